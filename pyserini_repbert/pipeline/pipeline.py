"""`Pipeline`: H0 … HN of Multi-Stage section 3; and `run_pipeline`, the one loop that runs it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.pipeline.part_file import open_part_file, run_digest
from pyserini_repbert.pipeline.spec import check_depths
from pyserini_repbert.ranking import ALL, NO_HITS, Batch, Query, RankedBatch, Ranker, Run
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.search.hybrid import Searcher, as_ranker
from pyserini_repbert.trace import SILENT, Notes, StageTimes, Trace

BATCH_TOPICS = 512  # searched together
# model inputs of a batch: enough to sort by length, and the most work that a kill can lose
BATCH_INPUTS = 8192

Stage = Ranker | Searcher | tuple[Ranker, int]
Texts = PassageTexts | Callable[[Iterable[str]], PassageTexts]


class Chain(Ranker):
    """Rerankers one after the other: each takes the best candidates of the one before."""

    def __init__(self, stages: Sequence[Ranker]) -> None:
        check_depths([stage.label for stage in stages], [stage.reads or 0 for stage in stages])
        self.parts = tuple(stages)
        self.reads = stages[0].reads
        self.name = '+'.join(stage.label for stage in stages)
        encoders = [getattr(leaf, 'encoder', leaf) for leaf in self.leaves()]
        self.tokenizers = [
            encoder.tokenizer for encoder in encoders if hasattr(encoder, 'tokenizer')
        ]
        self.times = StageTimes()

    def stream(self, batches: Iterable[Batch], trace: Trace = SILENT) -> Iterator[RankedBatch]:
        """As of every ranker; where workers tokenise, a batch is read and tokenised while the
        one before is ranked.
        """
        from pyserini_repbert.models.batching import ahead

        self.times = times = StageTimes()
        coming = times.making('reading', iter(batches))
        if any(tokenizer.workers for tokenizer in self.tokenizers):
            first = list(
                itertools.islice(coming, 1)
            )  # a whole corpus may be read for it: here, where Ctrl-C ends it
            coming = ahead(map(self._prepared, itertools.chain(first, coming)))
        with closing(coming):
            for number, topics, run in coming:
                notes = Notes(trace)
                with times.busy('computing'):
                    reranked = self.rank(topics, run, None, notes)
                yield RankedBatch(number, reranked, notes)

    def _prepared(self, batch: Batch) -> Batch:
        first = next(self.leaves())
        if isinstance(first, Reranker):
            lists = [
                (batch.run or {}).get(topic.qid, NO_HITS)[: first.reads] for topic in batch.topics
            ]
            first.prepare([topic.text for topic in batch.topics], lists)
        return batch

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        for name, stage in zip(self.part_names, self.parts, strict=True):
            run = stage.rank(topics, run, None, trace.part(name))
        return run or {}

    def identity(self) -> Mapping[str, Any]:
        return {'stages': [stage.identity() for stage in self.parts]}


class Pipeline(Ranker):
    """A first stage and rerankers; without a first stage, `rank` takes its run.

    Parameters
    ----------
    stages : rankers, the first stage in front: `[searcher, (MonoBertReranker(…), 50),
        (DuoBertReranker(…), 5)]`; a number is how many candidates the reranker takes, and must not
        grow from stage to stage; searchers of Pyserini are taken, too
    texts : gives passage text by docid, or opens what does for the docids needed; default: the
        first stage
    drop_rest : drop the candidates that a stage does not take, instead of leaving them below in
        their order
    """

    def __init__(
        self, stages: Sequence[Stage], texts: Texts | None = None, drop_rest: bool = False
    ) -> None:
        opened = [_opened(stage, drop_rest) for stage in stages]
        if not opened or any(stage.reads is None for stage in opened[1:]):
            raise InputError(
                'a pipeline takes one first stage or none, and rerankers: fuse several searchers '
                'first'
            )
        self.first = opened.pop(0) if opened[0].reads is None else None
        self.rerankers = opened[0] if len(opened) == 1 else Chain(opened) if opened else None
        self.source = texts or self.first
        self.reads = None if self.first or not self.rerankers else self.rerankers.reads
        self.parts = tuple(part for part in (self.first, self.rerankers) if part)
        self.name = '+'.join(part.label for part in self.parts)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        return run_pipeline(self, topics, run, k, trace, keep_runs=isinstance(trace, Notes))

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        texts = _texts(self.source, docids)
        return super().texts(docids) if texts is None else list(texts.texts(docids))


def _opened(stage: Stage, drop_rest: bool) -> Ranker:
    if not isinstance(stage, tuple):
        return as_ranker(stage)
    ranker, k = stage
    check_depths([ranker.label], [k])
    return ranker.with_settings(reads=k, drop_rest=drop_rest)


def run_pipeline(
    pipeline: Pipeline,
    topics: Sequence[Query],
    run: Run | None = None,
    k: int | None = 1000,
    trace: Trace = SILENT,
    output: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
    batch_topics: int = BATCH_TOPICS,
    batch_inputs: int = BATCH_INPUTS,
    keep_runs: bool = False,
) -> Run:
    """Run a pipeline: the first stage for all topics, then batches of topics through the rerankers.

    Parameters
    ----------
    run : of the first stage, for a pipeline without one
    output : the file that the caller will write: finished batches are stored in `OUTPUT.part`,
        which the caller removes with `part_file.finished` afterwards; None stores nothing
    resume, overwrite : continue an existing part file, or begin anew
    about : further values that decide the result (the corpus's name), compared on resuming
    batch_topics : topics that the first stage searches together
    batch_inputs : model inputs after which a batch of topics ends, and is written to the part file
    keep_runs : keep the run of each reranker in the notes that `trace` gets
    """
    rerankers = pipeline.rerankers
    reads = pipeline.rerankers.reads if pipeline.rerankers else 0
    if pipeline.first is not None:
        depth = k if k is None or not reads or reads == ALL else max(k, reads)
        trace.begins('search', len(topics), 'topics')
        run = {}
        for start in range(0, len(topics), batch_topics):
            batch = topics[start : start + batch_topics]
            run |= pipeline.first.rank(
                batch, None, depth, trace.part('search', pipeline.first.label)
            )
            trace.advance(len(batch))
    run = run or {}
    asked = [topic for topic in topics if run.get(topic.qid)]
    if rerankers is None or not asked:
        return {topic.qid: run.get(topic.qid, NO_HITS)[:k] for topic in topics}
    planned = rerankers.planned([len(run[topic.qid]) for topic in asked])
    ranges = cut_batches(planned, batch_inputs)
    batches: dict[int, tuple[Run, Notes]] = {}
    with ExitStack() as held:
        part = None
        if output is not None:
            deciding = {'pipeline': rerankers.identity(), 'batch_inputs': batch_inputs}
            deciding |= {'run': run_digest(asked, run), 'about': dict(about or {})}
            part = held.enter_context(open_part_file(output, deciding, resume, overwrite))
            batches |= part.batches
        trace.begins('rerank', sum(planned), 'inputs')
        trace.advance(sum(planned[place] for number in batches for place in ranges[number]))
        left = {
            n: [asked[place] for place in places]
            for n, places in enumerate(ranges)
            if n not in batches
        }
        for number, reranked, notes in rerankers.stream(
            _batches(left, run, pipeline.source, reads), trace
        ):
            batches[number] = (
                {qid: ranking.without_texts() for qid, ranking in reranked.items()},
                notes,
            )
            for stage in () if keep_runs else notes.walk():
                stage.run = {}  # of millions of hits, the runs of all stages fill the memory
            if part is not None:
                part.append(number, *batches[number])
    for number in range(len(ranges)):
        reranked, notes = batches[number]
        run = run | reranked
        if isinstance(trace, Notes):
            trace.part('rerank', rerankers.label).add(notes)
    return {topic.qid: run.get(topic.qid, NO_HITS)[:k] for topic in topics}


def _texts(source: Texts | None, docids: Iterable[str]) -> PassageTexts | None:
    return source(dict.fromkeys(docids)) if callable(source) else source


def _batches(
    left: Mapping[int, Sequence[Query]], run: Run, source: Texts | None, reads: int | None
) -> Iterator[Batch]:
    """The batches to rerank; a batch gets its texts when it is taken."""
    wanted = (
        docid
        for members in left.values()
        for topic in members
        for docid in run[topic.qid].docids[:reads]
    )
    texts = _texts(source, wanted) if left else None
    for number, members in left.items():
        yield Batch(
            number,
            members,
            with_texts({topic.qid: run[topic.qid] for topic in members}, texts, reads),
        )


def cut_batches(planned: Sequence[int], size: int = BATCH_INPUTS) -> list[range]:
    """Ranges of topics, one a batch: a batch ends with the topic that brings it to `size` model
    inputs.
    """
    batches = []
    start = 0
    total = 0
    for place, inputs in enumerate(planned):
        total += inputs
        if total >= size:
            batches.append(range(start, place + 1))
            start = place + 1
            total = 0
    return [*batches, range(start, len(planned))] if start < len(planned) else batches


def with_texts(run: Run, texts: PassageTexts | None, depth: int | None) -> Run:
    """The run with text for those of the first `depth` candidates that have none."""
    heads = [ranking[:depth] for ranking in run.values()]
    wanted = list(dict.fromkeys(hit.docid for head in heads for hit in head if hit.text is None))
    if texts is None or not wanted:
        return run
    known = dict(zip(wanted, texts.texts(wanted), strict=True))
    if isinstance(texts, Ranker) and not any(known.values()):
        return run  # a first stage that stores no texts, for rerankers that may need none
    if missing := [docid for docid, text in known.items() if text is None]:
        raise InputError(
            f"{len(missing)} candidates have no text, '{missing[0]}' among them: "
            'give the corpus or the index that the run was made from',
            parameters=('corpus', 'index'),
        )
    return {qid: ranking.with_texts(known) for qid, ranking in run.items()}

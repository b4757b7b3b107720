"""`Pipeline`: H0 … HN of Multi-Stage section 3; and `run_pipeline`, the one loop that runs it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.fusion.fused import look_deeper
from pyserini_repbert.pipeline.spec import check_depths
from pyserini_repbert.ranking import (
    ALL,
    NO_HITS,
    Batch,
    Candidate,
    Excerpts,
    Query,
    QueryRewriting,
    RankedBatch,
    Ranker,
    Ranking,
    Run,
    Searcher,
    check_question,
    with_best_passages,
)
from pyserini_repbert.rerank.base import DECISIVE, Reranker
from pyserini_repbert.search.hybrid import PyseriniSearcher, as_ranker
from pyserini_repbert.trace import SILENT, Notes, StageTimes, Trace

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import PassageTexts
    from pyserini_repbert.pipeline.part_file import PartFile

    Texts = PassageTexts | Callable[[Iterable[str]], PassageTexts]
    """What gives the texts of docids, or opens that for the docids which are needed."""

BATCH_TOPICS = 512  # searched together
# Model inputs of a batch: enough to sort by length, and the most work that a kill can lose.
BATCH_INPUTS = 8192

Stage = Ranker | PyseriniSearcher | tuple[Ranker, int]
"""A ranker, or a reranker with the number of candidates that it reads."""


class RerankerChain(Ranker, recorded_as='RerankerChain'):
    """Rerankers one after the other: each takes the best candidates of the one before.

    It makes several stages one ranker, so that a worker can rerank with all of them.

    Attributes
    ----------
    tokenizers : of the rerankers' models
    times : what reading and computing took in the last `stream`
    """

    def __init__(self, stages: Sequence[Ranker]) -> None:
        check_depths([stage.label for stage in stages], [stage.reads or 0 for stage in stages])
        self.parts = tuple(stages)
        self.reads = stages[0].reads
        self.name = '+'.join(stage.label for stage in stages)
        self.n_excerpts = max(stage.n_excerpts for stage in stages)
        encoders = [getattr(leaf, 'encoder', leaf) for leaf in self.leaves()]
        self.tokenizers = [
            encoder.tokenizer for encoder in encoders if hasattr(encoder, 'tokenizer')
        ]
        self.times = StageTimes()

    @property
    def reads_scores(self) -> bool:
        # The other stages read the scores of the stage before.
        return self.parts[0].reads_scores

    def stream(self, batches: Iterable[Batch], trace: Trace = SILENT) -> Iterator[RankedBatch]:
        """As for every ranker.

        If workers tokenise, a batch is read and tokenised while the previous one is ranked.
        """
        from pyserini_repbert.models.ahead import ahead

        times = StageTimes()
        self.times = times
        coming = times.making('reading', iter(batches))
        if any(tokenizer.workers for tokenizer in self.tokenizers):
            # The first batch may read a whole corpus: here, where Ctrl-C ends it.
            first = list(itertools.islice(coming, 1))
            coming = ahead(map(self._prepare, itertools.chain(first, coming)))
        with closing(coming):
            for number, topics, run in coming:
                notes = Notes(trace)
                with times.busy('computing'):
                    reranked = self.rank(topics, run, None, notes)
                yield RankedBatch(number, reranked, notes)

    def _prepare(self, batch: Batch) -> Batch:
        """The batch, tokenised for the first reranker."""
        first = next(self.leaves())
        if isinstance(first, Reranker):
            run = batch.run or {}
            lists = [run.get(topic.qid, NO_HITS)[: first.reads] for topic in batch.topics]
            first.prepare([topic.text for topic in batch.topics], lists)
        return batch

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        for name, stage in zip(self.part_names, self.parts, strict=True):
            run = stage.rank(topics, run, None, trace.part(name))
        return run or {}

    def identity(self) -> Mapping[str, Any]:
        return {'stages': [stage.identity() for stage in self.parts]}


class Pipeline(Searcher, recorded_as='Pipeline'):
    """A first stage and rerankers. Without a first stage, `rank` takes a run to rerank.

    Parameters
    ----------
    stages : rankers, the first stage in front: `[searcher, (MonoBertReranker(…), 50),
        (DuoBertReranker(…), 5)]`; a number is how many candidates the reranker takes, and must not
        grow from stage to stage; searchers of Pyserini are taken, too
    texts : gives passage text by docid, or opens the texts of the docids needed; default: the first
        stage
    drop_rest : drop the candidates that a stage does not take, instead of leaving them below in
        their order

    Attributes
    ----------
    rewriting : of the questions that the first stage searches; None: they do not change
    """

    rewriting: QueryRewriting | None = None

    def __init__(
        self, stages: Sequence[Stage], texts: Texts | None = None, drop_rest: bool = False
    ) -> None:
        rankers = [_as_stage(stage, drop_rest) for stage in stages]
        self.first: Ranker | None = None
        if rankers and rankers[0].reads is None:
            self.first = rankers.pop(0)
        self._check_stages(stages, rankers)
        self.rerankers = _chain(rankers)
        self.source = texts or self.first
        self.has_excerpts = isinstance(self.source, Ranker) and self.source.has_excerpts
        if self.rerankers is not None:
            self._check_excerpts(self.rerankers)
            if self.first is None:
                self.reads = self.rerankers.reads
        self.parts = tuple(part for part in (self.first, self.rerankers) if part)
        self.name = '+'.join(part.label for part in self.parts)

    @property
    def reads_scores(self) -> bool:
        return self.rerankers is not None and self.rerankers.reads_scores

    def searching_deeper(self, depth: int) -> Self:
        """The same, with each fused ranking searched at least so deep: for who shows its ranks."""
        if self.first is None:
            return self
        first = look_deeper(self.first, depth)
        return self.with_settings(first=first, parts=(first, *self.parts[1:]))

    @staticmethod
    def _check_stages(stages: Sequence[Stage], rerankers: Sequence[Ranker]) -> None:
        """Raises InputError without stages, or where a first stage is not the first."""
        if not stages or any(ranker.reads is None for ranker in rerankers):
            raise InputError(
                'a pipeline takes one first stage or none, and rerankers: fuse several searchers '
                'first'
            )

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        return run_pipeline(self, topics, run, k, trace, keep_runs=isinstance(trace, Notes))

    def _check_excerpts(self, rerankers: Ranker) -> None:
        """Raises InputError for several passages of hits that are not documents."""
        if rerankers.n_excerpts > 1 and not self.has_excerpts:
            raise InputError(
                f'{rerankers.n_excerpts} passages of a hit were asked for, but only '
                "documents of a collection have several: leave 'passages' out"
            )

    def by_documents(self) -> Self:
        """As in `Ranker`. Raises InputError for rerankers, which read a question."""
        if self.first is None or self.rerankers is not None:
            raise InputError(
                'a reranker reads a question, and was given a document: leave rerankers out',
                parameters=('like', 'rerank'),
            )
        first = self.first.by_documents()
        source = first if self.source is self.first else self.source
        return self.with_settings(first=first, parts=(first,), source=source)

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        """As in `Ranker`; rerankers read the original question.

        Raises InputError if no ranking searches for another query.
        """
        rewritten: list[Ranker] = []
        if self.first is not None:
            first = self.first.with_rewriting(rewriting)
            pairs = zip(self.first.leaves(), first.leaves(), strict=True)
            rewritten = [after for before, after in pairs if after is not before]
        if not rewritten:
            what = 'dense or BM25' if rewriting.rewrites_words else 'dense'
            raise InputError(
                f"'{rewriting.name}' rewrites the question of a {what} ranking, and there is none",
                parameters=('rewrite',),
            )
        return self.with_settings(first=first, parts=(first, *self.parts[1:]), rewriting=rewriting)

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        if self.has_excerpts and isinstance(self.source, Ranker):
            return self.source.with_stored_texts(query, ranking, n_excerpts)
        return super().with_stored_texts(query, ranking, n_excerpts)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        if self.has_excerpts and isinstance(self.source, Ranker):
            return self.source.with_shown_texts(query, ranking)
        return super().with_shown_texts(query, ranking)

    def search(self, query: str, k: int = 10) -> list[Candidate]:
        check_question(query)
        notes = Notes()
        run = self.rank([Query('0', query)], None, k, notes)
        return list(self.with_decisive_texts(Query('0', query), run['0'], notes))

    def with_decisive_texts(self, topic: Query, ranking: Ranking, notes: Notes) -> Ranking:
        """The hits with their texts; of a document, the passage that decided its rank comes first.

        That passage has the greatest score of a reranker that reads several passages. Without such
        a reranker, it is the passage that answers (`with_shown_texts`).

        Parameters
        ----------
        topic : the query
        ranking : of this query
        notes : what `rank` reported
        """
        if not self.rerankers:
            return self.with_shown_texts(topic.text, ranking)
        hits = self.with_stored_texts(topic.text, ranking, self.rerankers.n_excerpts)
        decisive: dict[str, int] = {}
        for part in notes.walk():
            decisive |= part.kept.get(DECISIVE, {}).get(topic.qid, {})
        excerpts: dict[str, Excerpts] = {}
        for hit in hits:
            first = [
                passage for passage in hit.excerpts if passage.number == decisive.get(hit.docid)
            ]
            others = [passage for passage in hit.excerpts if passage not in first]
            excerpts[hit.docid] = (*first, *others)
        return hits.with_excerpts(excerpts) if decisive else hits

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        texts = _open_texts(self.source, docids)
        if texts is None:
            return super().texts(docids)
        return list(texts.texts(docids))


def _chain(rerankers: Sequence[Ranker]) -> Ranker | None:
    """One reranker that does what these do, one after the other; None for none."""
    if not rerankers:
        return None
    if len(rerankers) == 1:
        return rerankers[0]
    return RerankerChain(rerankers)


def _as_stage(stage: Stage, drop_rest: bool) -> Ranker:
    """The ranker of a stage, which reads as many candidates as the stage says."""
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
    pipeline : open
    topics : with distinct qids
    run : of the first stage, for a pipeline without one
    k : hits of a topic, None: all
    trace : gets the progress, and what each part reports
    output : the file that the caller will write: finished batches are stored in `OUTPUT.part`,
        which the caller removes with `part_file.finished` afterwards; None stores nothing
    resume, overwrite : continue an existing part file, or begin again
    about : further values that decide the result (the corpus's name), compared on resuming
    batch_topics : topics that the first stage searches together
    batch_inputs : model inputs after which a batch of topics ends, and is written to the part file
    keep_runs : keep the run of each reranker in the notes that `trace` gets
    """
    if pipeline.first is not None:
        rewriting = pipeline.rewriting
        if rewriting is not None:
            rewriting.prepare(topics, trace.part('rewrite', rewriting.name))
        depth = _first_depth(pipeline, k)
        run = _search(pipeline.first, topics, depth, batch_topics, trace)
    run = run or {}
    with_hits = [topic for topic in topics if run.get(topic.qid)]
    if pipeline.rerankers is not None and with_hits:
        work = _Reranking(pipeline.rerankers, pipeline.source, with_hits, run, batch_inputs)
        with ExitStack() as held:
            part_file = None
            if output is not None:
                from pyserini_repbert.pipeline.part_file import open_part_file

                settings = work.settings(about or {})
                part_file = held.enter_context(open_part_file(output, settings, resume, overwrite))
            reranked = work.run_batches(trace, part_file, keep_runs)
        run = run | reranked
    return {topic.qid: run.get(topic.qid, NO_HITS)[:k] for topic in topics}


def _first_depth(pipeline: Pipeline, k: int | None) -> int | None:
    """How many hits the first stage gives: at least k, and what the rerankers read."""
    reads = pipeline.rerankers.reads if pipeline.rerankers else 0
    if k is None or not reads or reads == ALL:
        return k
    return max(k, reads)


def _search(
    first: Ranker, topics: Sequence[Query], depth: int | None, batch_topics: int, trace: Trace
) -> Run:
    """The run of the first stage."""
    trace.begins('search', len(topics), 'topics')
    run: Run = {}
    for start in range(0, len(topics), batch_topics):
        batch = topics[start : start + batch_topics]
        run |= first.rank(batch, None, depth, trace.part('search', first.label))
        trace.advance(len(batch))
    return run


class _Reranking:
    """The topics of a run, cut into batches, and what reranks them.

    Parameters
    ----------
    rerankers : what reranks
    source : gives the texts
    topics : those that have hits
    run : to rerank
    batch_inputs : model inputs after which a batch ends
    """

    def __init__(
        self,
        rerankers: Ranker,
        source: Texts | None,
        topics: Sequence[Query],
        run: Run,
        batch_inputs: int,
    ) -> None:
        self.rerankers = rerankers
        self.source = source
        self.topics = topics
        self.run = run
        self.batch_inputs = batch_inputs
        self.planned = rerankers.planned([len(run[topic.qid]) for topic in topics])
        self.batches = cut_batches(self.planned, batch_inputs)

    def settings(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that decides the result: what a part file compares on resuming."""
        from pyserini_repbert.pipeline.part_file import run_digest

        return {
            'pipeline': self.rerankers.identity(),
            'batch_inputs': self.batch_inputs,
            'run': run_digest(self.topics, self.run, self.rerankers.reads_scores),
            **about,
        }

    def run_batches(self, trace: Trace, part_file: PartFile | None, keep_runs: bool) -> Run:
        """The reranked run: batches that the part file has are taken from there."""
        finished = _finished_batches(part_file)
        trace.begins('rerank', sum(self.planned), 'inputs')
        trace.advance(sum(sum(self._planned_in(number)) for number in finished))
        left = [number for number in range(len(self.batches)) if number not in finished]
        for number, reranked, notes in self.rerankers.stream(self._batches_to_rank(left), trace):
            run = {qid: ranking.without_texts() for qid, ranking in reranked.items()}
            if not keep_runs:
                # Of millions of hits, the runs of all stages fill the memory.
                for stage in notes.walk():
                    stage.run = {}
            finished[number] = RankedBatch(number, run, notes)
            if part_file is not None:
                part_file.append(number, run, notes)
        whole: Run = {}
        for number in range(len(self.batches)):
            whole |= finished[number].run
            if isinstance(trace, Notes):
                trace.part('rerank', self.rerankers.label).add(finished[number].notes)
        return whole

    def _planned_in(self, number: int) -> list[int]:
        """The model inputs of each topic of a batch."""
        return [self.planned[row] for row in self.batches[number]]

    def _batches_to_rank(self, numbers: Sequence[int]) -> Iterator[Batch]:
        """The batches of these numbers; a batch gets its texts when it is taken."""
        if not numbers:
            return
        texts = _open_texts(self.source, self._docids(numbers))
        for number in numbers:
            topics = [self.topics[row] for row in self.batches[number]]
            run = {topic.qid: self.run[topic.qid] for topic in topics}
            if isinstance(texts, Ranker) and texts.has_excerpts:
                run = with_best_passages(topics, run, source=texts, reranker=self.rerankers)
            else:
                run = with_texts(run, texts, self.rerankers.reads)
            yield Batch(number, topics, run)

    def _docids(self, numbers: Sequence[int]) -> Iterator[str]:
        """The docids of all candidates of batches."""
        for number in numbers:
            for row in self.batches[number]:
                ranking = self.run[self.topics[row].qid]
                yield from ranking.docids[: self.rerankers.reads]


def _finished_batches(part_file: PartFile | None) -> dict[int, RankedBatch]:
    """The batches that a part file has, by number."""
    if part_file is None:
        return {}
    return {
        number: RankedBatch(number, run, notes)
        for number, (run, notes) in part_file.batches.items()
    }


def _open_texts(source: Texts | None, docids: Iterable[str]) -> PassageTexts | None:
    """The store that gives the texts of docids: the given one, or one opened for them."""
    if callable(source):
        return source(dict.fromkeys(docids))
    return source


def cut_batches(planned: Sequence[int], size: int = BATCH_INPUTS) -> list[range]:
    """Ranges of topics, one a batch: a batch ends with the topic that brings it to `size` model
    inputs.
    """
    batches = []
    start = 0
    total = 0
    for row, inputs in enumerate(planned):
        total += inputs
        if total >= size:
            batches.append(range(start, row + 1))
            start = row + 1
            total = 0
    if start < len(planned):
        batches.append(range(start, len(planned)))
    return batches


def with_texts(run: Run, texts: PassageTexts | None, depth: int | None) -> Run:
    """The run with texts added to the first `depth` candidates that have none."""
    if texts is None:
        return run
    docids = _docids_without_text(run, depth)
    if not docids:
        return run
    text_of = dict(zip(docids, texts.texts(docids), strict=True))
    if isinstance(texts, Ranker) and not any(text_of.values()):
        # A first stage that stores no texts, for rerankers that may need none.
        return run
    missing = [docid for docid, text in text_of.items() if text is None]
    if missing:
        raise InputError(
            f"{len(missing)} candidates have no text, '{missing[0]}' among them: "
            'give the corpus or the index that the run was made from',
            parameters=('corpus', 'index'),
        )
    return {qid: ranking.with_texts(text_of) for qid, ranking in run.items()}


def _docids_without_text(run: Run, depth: int | None) -> list[str]:
    """The distinct docids of candidates without text among the first `depth`."""
    docids: dict[str, None] = {}
    for ranking in run.values():
        for candidate in ranking[:depth]:
            if candidate.text is None:
                docids[candidate.docid] = None
    return list(docids)

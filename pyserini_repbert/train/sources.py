"""Training instances from topics, qrels, runs and triples: an endless stream of ids, in an order
that the seed decides.

Texts are looked up for each batch.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from pyserini_repbert.data.runs import iter_run
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.names.topics import IR_DATASETS, dataset, load_qrels
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.recipe import (
    Source,
    Teacher,
)
from pyserini_repbert.train.inputs import Guard, ScoreFile, open_passages, source_topics


class TrainingSource:
    """The source at position `number` of a recipe, opened: its queries, judgments and texts, and
    its instances.

    `group` counts candidates, the relevant one included; 0 for pairs. `scorer` is the teacher's
    checkpoint, used if the source has no file of scores. `space` is the corpus or index that the
    docids are of, '' for triples of texts: equal docids in one space are one passage.
    """

    def __init__(
        self,
        source: Source,
        number: int,
        guard: Guard,
        group: int = 0,
        teacher: Teacher | None = None,
        scorer: Any = None,
    ) -> None:
        self.source = source
        self.number = number
        self.guard = guard
        self.group = group
        self.where = f'data.{number}'  # in errors
        self.teacher: Any = teacher  # a recipe with groups that has a teacher also has a scorer
        self.scorer = ScoreFile(source.scores, self.where) if source.scores else scorer
        self.of_texts = source.topics is None
        self.space = '' if self.of_texts else str(source.corpus or source.index)
        self.queries = {
            query.qid: query.text
            for query in source_topics(source)
            if guard.admits(query.text, f"{self.where}: topic '{query.qid}'")
        }
        qrels = load_qrels(source.qrels) if source.qrels else {}
        self.judged: Qrels = {qid: grades for qid, grades in qrels.items() if qid in self.queries}
        self.passages = None if self.of_texts else open_passages(source)

    def relevant(self, qid: str) -> list[str]:
        """The docids judged relevant to a query, in the order of the qrels."""
        grades = self.judged.get(qid, {})
        return [docid for docid, grade in grades.items() if grade >= self.source.relevant_from]

    def query(self, qid: str) -> str:
        """A query's text."""
        return qid if self.of_texts else self.queries[qid]

    def texts(self, docids: Sequence[str]) -> list[str]:
        """Passages' texts. Raises InputError for a docid that the corpus lacks."""
        if self.passages is None:
            return list(docids)  # triples of texts are their own ids
        texts = []
        for docid, text in zip(docids, self.passages.texts(docids), strict=True):
            if text is None:
                raise InputError(
                    f"{self.where}: passage '{docid}' is not in {self.space}: check corpus and "
                    f'judgments'
                )
            texts.append(text)
        return texts

    def instances(self, seed: int, epoch: int) -> Iterator[Instance]:
        """The instances of an epoch: in the order of triples or of a run, else in an order drawn
        by the seed.
        """
        if self.source.triples is not None:
            yield from self._from_triples(self.source.triples)
        elif self.source.run is not None:
            for qid, ranked in iter_run(self.source.run, self.source.depth):
                if qid in self.queries:
                    yield from self._of_query(
                        qid, ranked.docids, random.Random(f'{seed} {epoch} {qid}')
                    )
        else:
            qids = [qid for qid in self.queries if qid in self.judged]
            random.Random(f'{seed} {epoch}').shuffle(qids)
            for qid in qids:
                yield from self._of_query(qid, None, random.Random(f'{seed} {epoch} {qid}'))

    def taught(self, qid: str, docids: Sequence[str]) -> list[float]:
        """The teacher's scores of a query's candidates, as logits."""
        scores = self.scorer.scores(qid, self.query(qid), docids, self.texts(docids))
        return [score * self.teacher.scale for score in scores]

    def _groups(
        self, qid: str, relevant: Sequence[str], others: Sequence[str], draw: random.Random
    ) -> Iterator[Instance]:
        """A group for each relevant passage; one group, without a relevant passage, if the
        source has no qrels.
        """
        for first in [(docid,) for docid in relevant] if self.source.qrels else [()]:
            drawn = draw.sample(others, min(len(others), self.group - len(first)))
            if first and self.teacher is not None and self.teacher.drop_above:
                best, *scores = self.taught(qid, [*first, *drawn])
                part = self.teacher.drop_above
                most = best * (
                    part if best >= 0 else 2 - part
                )  # as far below the positive, if scores are negative
                drawn = [docid for docid, score in zip(drawn, scores, strict=True) if score <= most]
            if len(first) + len(drawn) > 1:
                yield Instance(self.number, qid, (*first, *drawn), bool(first))

    def _of_query(
        self, qid: str, hits: Sequence[str] | None, draw: random.Random
    ) -> Iterator[Instance]:
        relevant = self.relevant(qid)
        known = set(relevant)
        negatives = [docid for docid in hits or () if docid not in known]
        if self.group:
            yield from self._groups(qid, relevant, negatives, draw)
            return
        if self.source.judged_only:
            negatives = [docid for docid in self.judged.get(qid, {}) if docid not in known]
            retrieved = known if hits is None else set(hits)
            relevant = [docid for docid in relevant if docid in retrieved]
        for positive in relevant:
            if not self.source.negatives:
                yield Instance(self.number, qid, (positive,))
            for negative in draw.sample(negatives, min(self.source.negatives, len(negatives))):
                yield Instance(self.number, qid, (positive, negative))

    def _from_triples(self, name: str) -> Iterator[Instance]:
        if name.startswith(IR_DATASETS):
            lines = (
                (name, 0, [pair.query_id, pair.doc_id_a, pair.doc_id_b])
                for pair in dataset(name).docpairs_iter()
            )
        else:
            lines = (
                (name, number, line.split('\t' if self.of_texts or '\t' in line else None))
                for number, line in numbered_lines(name, 'triples file')
                if line.strip()
            )
        for path, number, columns in lines:
            if len(columns) != 3:
                form = 'query<TAB>relevant<TAB>other' if self.of_texts else 'qid pid pid'
                raise InputError.at(
                    path, number, f"expected '{form}', found {len(columns)} columns"
                )
            qid, positive, negative = columns
            if self.guard.admits(qid, f'{path}:{number}') if self.of_texts else qid in self.queries:
                yield Instance(self.number, qid, (positive, negative))


class InstanceStream(IterableDataset[Instance]):
    """The instances of all sources, epoch after epoch without end, in an order that the seed
    decides.

    In an epoch, sources take turns until all are exhausted. Only the shuffle buffer, of `shuffle`
    instances, is held in memory; a buffer of 1 keeps the order. Sources are anything with
    `instances(seed, epoch)` and `where`.

    Iteration begins with the instance at `position`, from 0. Worker processes take turns of `chunk`
    instances, a batch of all devices. Raises InputError for sources without instances.
    """

    def __init__(
        self, sources: Sequence[Any], seed: int, shuffle: int, chunk: int = 1, position: int = 0
    ) -> None:
        self.sources = list(sources)
        self.seed = seed
        self.shuffle = shuffle
        self.chunk = chunk
        self.position = position

    def __iter__(self) -> Iterator[Instance]:
        instances = itertools.islice(self._endless(), self.position, None)
        worker = get_worker_info()
        if worker is None:
            yield from instances
            return
        for number in itertools.count():
            part = list(itertools.islice(instances, self.chunk))
            if number % worker.num_workers == worker.id:
                yield from part

    def _endless(self) -> Iterator[Instance]:
        for epoch in itertools.count():
            nothing = True
            for instance in self._shuffled(epoch):
                nothing = False
                yield instance
            if nothing:
                where = ', '.join(source.where for source in self.sources)
                reason = 'no topic has both a relevant passage and the negatives asked for'
                raise InputError(f'{where}: no training instances: {reason}')

    def _shuffled(self, epoch: int) -> Iterator[Instance]:
        draw = random.Random(f'{self.seed} {epoch}')
        waiting: list[Instance] = []
        turns = itertools.zip_longest(
            *(source.instances(self.seed, epoch) for source in self.sources)
        )
        for instance in filter(None, itertools.chain.from_iterable(turns)):
            if len(waiting) < self.shuffle:
                waiting.append(instance)
                continue
            at = draw.randrange(len(waiting))
            waiting[at], instance = instance, waiting[at]
            yield instance
        draw.shuffle(waiting)
        yield from waiting

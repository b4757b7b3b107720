"""Training instances from topics, qrels, runs and triples, as ids; texts are looked up for each
batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyserini_repbert.data.pairs import read_pairs
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.data.runs import iter_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.names.datasets import IR_DATASETS, dataset
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.recipe import Source, Teacher
from pyserini_repbert.train.inputs import Guard, open_passages, same_texts, source_topics
from pyserini_repbert.train.teachers import CandidateScorer, ScoreFile


class TrainingSource:
    """A source of a recipe, opened: its queries, judgments and texts, and its instances.

    Parameters
    ----------
    source : of the recipe
    number : its position there
    guard : says which queries may be trained on
    group : how many candidates a group has, the relevant one included; 0 for pairs
    teacher : the recipe's
    scorer : the teacher's checkpoint, used if the source has no file of scores

    Attributes
    ----------
    space : the corpus or index that the docids are of, '' for triples of texts; equal docids in
        one space are one passage
    """

    def __init__(
        self,
        source: Source,
        number: int,
        guard: Guard,
        group: int = 0,
        teacher: Teacher | None = None,
        scorer: CandidateScorer | None = None,
    ) -> None:
        self.source = source
        self.number = number
        self.guard = guard
        self.group = group
        # Names the source in errors.
        self.where = f'data.{number}'
        self.teacher = teacher
        self.scorer = ScoreFile(source.scores, self.where) if source.scores else scorer
        self.of_texts = source.topics is None
        self.space = '' if self.of_texts else str(source.corpus or source.index)
        self.queries: dict[str, str] = {}
        topics = source_topics(source)
        # A fold's other topics are only in the whole file.
        is_fold = source.topics is not None and source.qids is not None
        others = same_texts(load_topics(str(source.topics)) if is_fold else topics)
        for query in topics:
            where = f"{self.where}: topic '{query.qid}'"
            if guard.admits(query.text, where, others.get(query.qid, ())):
                self.queries[query.qid] = query.text
        qrels = load_qrels(source.qrels) if source.qrels else {}
        self.judged: Qrels = {qid: grades for qid, grades in qrels.items() if qid in self.queries}
        self.passages = None if self.of_texts else open_passages(source)
        # Query -> the relevant passages of its triples so far, if there are no judgments.
        self.seen_relevant: dict[str, dict[str, None]] = {}

    def relevant(self, qid: str) -> list[str]:
        """The docids judged relevant to a query, in the order of the qrels.

        Without qrels, those that triples have shown so far.
        """
        if not self.source.qrels:
            return list(self.seen_relevant.get(qid, ()))
        grades = self.judged.get(qid, {})
        return [docid for docid, grade in grades.items() if grade >= self.source.relevant_from]

    def query(self, qid: str) -> str:
        """A query's text."""
        return qid if self.of_texts else self.queries[qid]

    def texts(self, docids: Sequence[str]) -> list[str]:
        """Passages' texts. Raises InputError for a docid that the corpus lacks."""
        if self.passages is None:
            # Triples of texts are their own ids.
            return list(docids)
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
        """The instances of an epoch: in the order of triples or of a run, otherwise in an order
        drawn by the seed.
        """
        if self.source.triples is not None:
            if epoch == 0:
                self.seen_relevant = {}
            yield from self._from_triples(self.source.triples)
        elif self.source.pairs is not None:
            yield from self._from_pairs(self.source.pairs, seed, epoch)
        elif self.source.run is not None:
            for qid, ranking in iter_run(self.source.run, self.source.depth):
                if qid in self.queries:
                    draw = random.Random(f'{seed} {epoch} {qid}')
                    yield from self._of_query(qid, ranking.docids, draw)
        else:
            qids = [qid for qid in self.queries if qid in self.judged]
            random.Random(f'{seed} {epoch}').shuffle(qids)
            for qid in qids:
                draw = random.Random(f'{seed} {epoch} {qid}')
                yield from self._of_query(qid, None, draw)

    def taught(self, qid: str, docids: Sequence[str]) -> list[float]:
        """The teacher's scores of a query's candidates, as logits."""
        # A recipe with groups that has a teacher also has a scorer.
        assert self.teacher is not None
        assert self.scorer is not None
        scores = self.scorer.scores(qid, self.query(qid), docids, self.texts(docids))
        return [score * self.teacher.scale for score in scores]

    def _of_query(
        self, qid: str, hits: Sequence[str] | None, draw: random.Random
    ) -> Iterator[Instance]:
        """The instances of a query; `hits` are from the source's run; None if it has no run."""
        relevant = self.relevant(qid)
        known = set(relevant)
        source = self.source
        if hits is not None and (source.retrieved_only or source.judged_only):
            retrieved = set(hits)
            relevant = [docid for docid in relevant if docid in retrieved]
        candidates = self.judged.get(qid, {}) if source.judged_only else hits or ()
        others = [docid for docid in candidates if docid not in known]
        if self.group:
            yield from self._groups(qid, relevant, others, draw)
        else:
            yield from self._pairs(qid, relevant, others, draw)

    def _groups(
        self, qid: str, relevant: Sequence[str], others: Sequence[str], draw: random.Random
    ) -> Iterator[Instance]:
        """A group for each relevant passage; one group, without a relevant passage, if the
        source has no qrels.
        """
        if not self.source.qrels:
            drawn = draw.sample(others, min(len(others), self.group))
            if len(drawn) > 1:
                yield Instance(self.number, qid, tuple(drawn), judged=False)
            return
        for positive in relevant:
            drawn = draw.sample(others, min(len(others), self.group - 1))
            if self.teacher is not None and self.teacher.drop_above:
                drawn = self._drop_above(self.teacher.drop_above, qid, positive, drawn)
            if drawn:
                yield Instance(self.number, qid, (positive, *drawn))

    def _drop_above(
        self, share: float, qid: str, positive: str, others: Sequence[str]
    ) -> list[str]:
        """The other passages that the teacher scores below this share of the relevant passage's
        score.
        """
        best, *scores = self.taught(qid, [positive, *others])
        # As far below a relevant passage whose score is negative.
        most = best * share if best >= 0 else best * (2 - share)
        return [docid for docid, score in zip(others, scores, strict=True) if score <= most]

    def _pairs(
        self, qid: str, relevant: Sequence[str], negatives: Sequence[str], draw: random.Random
    ) -> Iterator[Instance]:
        """Pairs of each relevant passage and others; with `negatives` 0, only the relevant passage.

        With `pairs_per_topic`, so many relevant passages are drawn.
        """
        n_drawn = self.source.pairs_per_topic
        if n_drawn:
            relevant = draw.sample(relevant, min(n_drawn, len(relevant)))
        for positive in relevant:
            if not self.source.negatives:
                yield Instance(self.number, qid, (positive,))
            for negative in draw.sample(negatives, min(self.source.negatives, len(negatives))):
                yield Instance(self.number, qid, (positive, negative))

    def _from_pairs(self, path: str, seed: int, epoch: int) -> Iterator[Instance]:
        """Instances of the topics of CEDR's pairs, in an order drawn by the seed."""
        docids_of = read_pairs(path)
        qids = [qid for qid in docids_of if qid in self.queries]
        random.Random(f'{seed} {epoch}').shuffle(qids)
        for qid in qids:
            known = set(self.relevant(qid))
            judged = self.judged.get(qid, {})
            relevant = []
            others = []
            for docid in docids_of[qid]:
                if docid in known:
                    relevant.append(docid)
                elif docid in judged or not self.source.judged_only:
                    others.append(docid)
            draw = random.Random(f'{seed} {epoch} {qid}')
            yield from self._pairs(qid, relevant, others, draw)

    def _from_triples(self, name: str) -> Iterator[Instance]:
        for triple in self._triples(name):
            if self._admits(triple):
                if not self.source.qrels:
                    seen = self.seen_relevant.setdefault(triple.query, {})
                    seen[triple.positive] = None
                yield Instance(self.number, triple.query, (triple.positive, triple.negative))

    def _admits(self, triple: _Triple) -> bool:
        """Whether its query may be trained on."""
        if self.of_texts:
            return self.guard.admits(triple.query, triple.where)
        return triple.query in self.queries

    def _triples(self, name: str) -> Iterator[_Triple]:
        """The triples of a file, or of a data set of ir_datasets."""
        if name.startswith(IR_DATASETS):
            for pair in dataset(name).docpairs_iter():
                yield _Triple(pair.query_id, pair.doc_id_a, pair.doc_id_b, where=f'{name}:0')
            return
        for number, line in numbered_lines(name, 'triples file'):
            if not line.strip():
                continue
            columns = line.split('\t' if self.of_texts or '\t' in line else None)
            if len(columns) != 3:
                form = 'query<TAB>relevant<TAB>other' if self.of_texts else 'qid pid pid'
                raise InputError.at(
                    name, number, f"expected '{form}', found {len(columns)} columns"
                )
            query, positive, negative = columns
            yield _Triple(query, positive, negative, where=f'{name}:{number}')


@dataclass(frozen=True, slots=True)
class _Triple:
    """A query, a relevant passage and another one, by texts or ids; `where` names it in errors."""

    query: str
    positive: str
    negative: str
    where: str

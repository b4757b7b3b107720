"""Rerankers that reach beyond the run: the neighbours of good documents become candidates, too.

The documents of the first stage bound what reranking can reach. By the cluster hypothesis, the
neighbours of a relevant document are likely relevant. `NeighbourReranker` is what the rerankers
share that find them by the graph of the index (`NeighbourGraph`). `AdaptiveReranker` is
GAR: any reranker that scores candidates one by one.

GAR: MacAvaney, Tonellotto, Macdonald, "Adaptive Re-Ranking with a Corpus Graph", CIKM 2022,
https://arxiv.org/abs/2208.08942, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.neighbours.graph import (
    DEFAULT_NEIGHBOURS,
    NeighbourGraph,
    numbers_of_graph,
)
from pyserini_repbert.models.checkpoints.checkpoint import models_of
from pyserini_repbert.ranking import ALL, NO_HITS, Candidate, Query, Ranking, Run
from pyserini_repbert.record import Model
from pyserini_repbert.rerank.base import (
    DECISIVE,
    ExplanationSettings,
    Progress,
    Reranker,
    Scores,
    rescored,
)
from pyserini_repbert.rerank.documents import IndexReranker
from pyserini_repbert.trace import SILENT, Notes, StageCost, Trace

# b of the paper: how many documents are scored between two looks at the graph.
BATCH = 16


class NeighbourReranker(IndexReranker):
    """Scores candidates and neighbours of candidates; the rest of the run stays below.

    Attributes
    ----------
    n_neighbours : of a document, k of the papers
    """

    n_neighbours: int = DEFAULT_NEIGHBOURS
    needs_text = False

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'neighbours': self.n_neighbours,
            'graph': dict(self.graph().identity()),
        }

    def graph(self) -> NeighbourGraph:
        """The graph of the index that is searched. Raises the errors of `NeighbourGraph`."""
        return NeighbourGraph(numbers_of_graph(self.index.numbers, self.index.description))

    def merge(self, topic: Query, given: Ranking, scored: Ranking) -> Ranking:
        """The scored documents, with texts for later stages, above the rest of the run.

        Parameters
        ----------
        topic : the query
        given : its ranking in the run
        scored : the scored documents, best first
        """
        if self.later_reads:
            head = scored[: self.later_reads]
            head = self.index.with_texts(topic.text, head, self.later_excerpts)
            scored = Ranking.of([*head, *scored[len(head) :]])
        if self.drop_rest:
            return scored
        is_scored = set(scored.docids)
        rows = [row for row, docid in enumerate(given.docids) if docid not in is_scored]
        return scored.append_below(given.select_rows(rows, [given.scores[row] for row in rows]))


class _Exploration:
    """The candidates of one query: from the run, and from the frontier of scored documents.

    Parameters
    ----------
    docids : of the run, best first
    budget : how many documents are scored in all

    Attributes
    ----------
    scores : of the documents that were scored, by docid, in the order in which they were
    """

    def __init__(self, docids: Iterable[str], budget: int) -> None:
        self.scores: dict[str, float] = {}
        self._budget = budget
        # Of the run, all are equal: they are taken in their order.
        self._of_run = dict.fromkeys(docids, 0.0)
        # The best score of a document that has them as neighbours.
        self._frontier: dict[str, float] = {}
        self._is_turn_of_run = True

    def next_batch(self) -> list[str]:
        """The docids to score next, alternately from the run and from the frontier."""
        size = min(BATCH, self._budget - len(self.scores))
        if size <= 0:
            return []
        pool = self._of_run if self._is_turn_of_run else self._frontier
        self._is_turn_of_run = not self._is_turn_of_run
        if not pool:
            pool = self._of_run or self._frontier
            self._is_turn_of_run = pool is self._frontier
        # If several are equal, the first ones found.
        return sorted(pool, key=lambda docid: -pool[docid])[:size]

    def add(self, scored: Ranking, neighbours: Sequence[Sequence[str]]) -> None:
        """Take the scores of a batch, best first, and the neighbours of each of its documents."""
        for docid, score in zip(scored.docids, scored.scores, strict=True):
            self.scores[docid] = score
            self._of_run.pop(docid, None)
            self._frontier.pop(docid, None)
        for score, docids in zip(scored.scores, neighbours, strict=True):
            for docid in docids:
                if docid not in self.scores:
                    self._frontier[docid] = max(score, self._frontier.get(docid, score))


class AdaptiveReranker(NeighbourReranker, recorded_as='AdaptiveReranker'):
    """GAR: a reranker that alternately reads candidates of the run and neighbours of the best.

    It scores at most as many documents as the reranker alone would: `reads`, the paper's budget c.

    Parameters
    ----------
    reranker : scores documents one by one
    n_neighbours : of a document

    Raises InputError for a reranker that compares candidates, or mixes their scores with the run's.
    """

    def __init__(self, reranker: Reranker, n_neighbours: int = DEFAULT_NEIGHBOURS) -> None:
        if reranker.compares:
            raise InputError(
                f"'{reranker.label}' compares the candidates of a list, and neighbours join it "
                "later: leave 'neighbours' out"
            )
        if reranker.score_share is not None:
            raise InputError(
                "'weight' mixes a score with the previous stage's, which neighbours lack: leave "
                "'weight' or 'neighbours' out"
            )
        self.reranker = reranker.with_settings(reads=ALL, drop_rest=False)
        self.n_neighbours = n_neighbours
        self.name = reranker.name
        self.reads = reranker.reads
        self.drop_rest = reranker.drop_rest
        self.n_excerpts = reranker.n_excerpts
        self.needs_text = reranker.needs_text
        self.precision = reranker.precision

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that it runs, for records."""
        return models_of(self.reranker)

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), 'batch': BATCH, 'reranker': dict(self.reranker.identity())}

    def with_options(self, **options: Any) -> Self:
        return self.with_settings(reranker=self.reranker.with_options(**options))

    def remembering(self) -> Self:
        return self.with_settings(reranker=self.reranker.remembering())

    def relevance(self, score: float) -> float:
        return self.reranker.relevance(score)

    def reason(self, query: str, hit: Candidate) -> str:
        return self.reranker.reason(query, hit)

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        return self.reranker.explain(query, hits, settings, trace)

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The reranker's scores of given candidates, without neighbours."""
        return self.reranker.score_lists(queries, lists, on_progress)

    def inferences(self, n: int) -> int:
        return self.reranker.inferences(n)

    def planned(self, lengths: Sequence[int]) -> list[int]:
        """As in `Ranker`: neighbours fill what the run leaves of the budget."""
        return [self.inferences(self._budget(n) * self.n_excerpts) if n else 0 for n in lengths]

    def _budget(self, n: int) -> int:
        """How many documents are scored for a run of n hits."""
        return n if self.reads == ALL else self.reads

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        given = {topic.qid: (run or {}).get(topic.qid, NO_HITS) for topic in topics}
        explorations: dict[str, _Exploration] = {}
        known: dict[str, dict[str, Candidate]] = {}
        for qid, ranking in given.items():
            head = ranking[: self.reads]
            known[qid] = {hit.docid: hit for hit in head}
            explorations[qid] = _Exploration(head.docids, self._budget(len(head)))
        notes = Notes(trace)
        graph = self.graph()
        while True:
            batches = self._next_batches(topics, explorations, known)
            if not batches:
                break
            asked = [topic for topic in topics if topic.qid in batches]
            of_batch = Notes(trace)
            scored = self.reranker.rank(asked, batches, None, of_batch)
            _add_notes(notes, of_batch)
            self._explore(scored, explorations, graph)
            for qid, ranking in scored.items():
                known[qid] |= {hit.docid: hit for hit in ranking}
        self._report(notes, trace, len(topics))
        whole: Run = {}
        for topic in topics:
            scores = explorations[topic.qid].scores
            hits = Ranking.of([known[topic.qid][docid] for docid in scores])
            ranked = rescored(hits, np.array(list(scores.values()), np.float64))
            whole[topic.qid] = self.merge(topic, given[topic.qid], ranked)
        return whole

    def _next_batches(
        self,
        topics: Sequence[Query],
        explorations: Mapping[str, _Exploration],
        known: Mapping[str, Mapping[str, Candidate]],
    ) -> Run:
        """The candidates that are scored next, with their texts, by qid.

        Parameters
        ----------
        topics : the queries
        explorations : of each
        known : the candidates whose texts are known, by qid and docid
        """
        batches: Run = {}
        for topic in topics:
            docids = explorations[topic.qid].next_batch()
            if not docids:
                continue
            of_run = known[topic.qid]
            others = Ranking(docid for docid in docids if docid not in of_run)
            others = Ranking(others.docids, [0.0] * len(others))
            if self.needs_text and len(others):
                others = self.index.with_texts(topic.text, others, self.n_excerpts)
            candidates = {hit.docid: hit for hit in others} | {
                docid: of_run[docid] for docid in docids if docid in of_run
            }
            batches[topic.qid] = Ranking.of([candidates[docid] for docid in docids])
        return batches

    def _explore(
        self, scored: Run, explorations: Mapping[str, _Exploration], graph: NeighbourGraph
    ) -> None:
        """Give each query the scores of its batch, and the neighbours of the scored documents."""
        docids: list[str] = []
        for ranking in scored.values():
            docids += ranking.docids
        neighbours = iter(graph.neighbours(docids, self.n_neighbours))
        for qid, ranking in scored.items():
            explorations[qid].add(ranking, [next(neighbours) for _ in ranking.docids])

    def _report(self, notes: Notes, trace: Trace, n_topics: int) -> None:
        """Tell what all batches took, and which passage of each document decided."""
        cost = notes.cost
        if cost is None:
            cost = StageCost(self.label, 0, 0, 0.0, None, 0, None, precision=self.precision)
        trace.spent(replace(cost, stage=self.label, queries=n_topics))
        for qid, decisive in notes.kept.get(DECISIVE, {}).items():
            trace.keep(DECISIVE, qid, decisive)


def _add_notes(notes: Notes, of_batch: Notes) -> None:
    """Add what a batch took, and the decisive passages of its documents."""
    for qid, decisive in of_batch.kept.pop(DECISIVE, {}).items():
        earlier = notes.kept.get(DECISIVE, {}).get(qid, {})
        of_batch.keep(DECISIVE, qid, {**earlier, **decisive})
    notes.add(of_batch)


def follow_neighbours(reranker: Reranker, n_neighbours: int) -> Reranker:
    """A reranker that also reads neighbours, so many of a document."""
    if isinstance(reranker, NeighbourReranker):
        return reranker.with_settings(n_neighbours=n_neighbours)
    return AdaptiveReranker(reranker, n_neighbours)

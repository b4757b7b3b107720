"""Lexically accelerated dense retrieval, proactive and adaptive."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.neighbours.graph import NeighbourGraph
from pyserini_repbert.extensions.neighbours.reranking import NeighbourReranker
from pyserini_repbert.ranking import NO_HITS, Candidate, Query, Ranking, Run, by_score
from pyserini_repbert.rerank.base import Progress, Scores
from pyserini_repbert.trace import StageCost, Trace

# Adaptive: c of the paper, the hits whose neighbours have to be scored.
DEPTH = 100


class LadrMethod(Choice, what='method of LADR'):
    """Whose neighbours are scored."""

    PROACTIVE = 'proactive'
    ADAPTIVE = 'adaptive'


class LadrReranker(NeighbourReranker, recorded_as='LadrReranker'):
    """Scores the candidates that it reads, and their neighbours, as dense search does.

    Proactive (section 3.1 of the paper): all candidates, and the neighbours of each. Adaptive
    (section 3.2): all candidates; then the neighbours of the `depth` best, until the best ones'
    neighbours are all scored. A candidate without a vector stays below, in its order. An inference
    is a vector that is read.

    Parameters
    ----------
    name : 'ladr'
    device : of other rerankers; not used
    method : 'proactive' or 'adaptive'
    depth : of 'adaptive', default 100
    """

    def __init__(
        self,
        name: str = 'ladr',
        device: str = 'cpu',
        method: LadrMethod | str = LadrMethod.PROACTIVE,
        depth: int | None = None,
    ) -> None:
        self.name = name
        self.method = LadrMethod(method)
        if depth is not None and self.method is not LadrMethod.ADAPTIVE:
            raise InputError(
                "'depth' is for LADR's method 'adaptive': name it, or leave 'depth' out"
            )
        self.depth = depth or DEPTH

    def identity(self) -> Mapping[str, Any]:
        identity = {**super().identity(), 'method': str(self.method)}
        if self.method is LadrMethod.ADAPTIVE:
            identity['depth'] = self.depth
        return identity

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The dense scores of given candidates, without neighbours, float64 (n,) a query.

        Raises InputError for a candidate without a vector.
        """
        scores: Scores = []
        vectors = self.index.query_vectors(queries)
        for query, candidates in zip(vectors, lists, strict=True):
            score_of = self.index.dense_scores(query, candidates.docids)
            missing = [docid for docid in candidates.docids if docid not in score_of]
            if missing:
                raise InputError(f"candidate '{missing[0]}' has no vector in the index")
            scores.append(np.array([score_of[docid] for docid in candidates.docids], np.float64))
            on_progress(len(candidates))
        return scores

    def reason(self, query: str, hit: Candidate) -> str:
        return f'its vector fits the question: {hit.score:.4f} (LADR, {self.method})'

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        start = time.perf_counter()
        n_scored = 0
        whole: Run = {}
        graph = self.graph()
        vectors = self.index.query_vectors([topic.text for topic in topics])
        for topic, query in zip(topics, vectors, strict=True):
            given = (run or {}).get(topic.qid, NO_HITS)
            head = given[: self.reads]
            score_of = self._scores(query, head.docids, graph)
            n_scored += len(score_of)
            scored = by_score(list(score_of), list(score_of.values()))
            whole[topic.qid] = self.merge(topic, given, scored)
            trace.advance(len(head))
        seconds = time.perf_counter() - start
        trace.spent(
            StageCost(self.label, len(topics), n_scored, seconds, None, n_scored, None, n_scored)
        )
        return whole

    def _scores(
        self, query: NDArray[np.float32], docids: Sequence[str], graph: NeighbourGraph
    ) -> dict[str, float]:
        """The dense scores of seeds, and of the neighbours that the method reaches."""
        score_of = self.index.dense_scores(query, docids)
        sources = list(docids)
        # Documents without a vector: they are not looked for again.
        seen = set(docids)
        while sources:
            found = _unseen(graph.neighbours(sources, self.n_neighbours), seen)
            if not found:
                break
            seen.update(found)
            score_of |= self.index.dense_scores(query, found)
            if self.method is LadrMethod.PROACTIVE:
                break
            sources = list(by_score(list(score_of), list(score_of.values())).docids[: self.depth])
        return score_of


def _unseen(neighbours: Iterable[Sequence[str]], seen: set[str]) -> list[str]:
    """The neighbours that were not seen, each once."""
    found: dict[str, None] = {}
    for docids in neighbours:
        for docid in docids:
            if docid not in seen:
                found[docid] = None
    return list(found)

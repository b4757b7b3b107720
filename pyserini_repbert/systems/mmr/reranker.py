"""Maximal marginal relevance, by the vectors of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import scaled
from pyserini_repbert.fusion.methods import Normalization
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import Progress, Scores
from pyserini_repbert.rerank.documents import IndexReranker

DIVERSIFY = 0.5


class MmrReranker(IndexReranker, recorded_as='MmrReranker'):
    """Takes, again and again, the candidate with the greatest marginal relevance.

    That is (1 - D) relevance - D similarity (equation of the paper's section 2, with lambda =
    1 - D). Relevance is the candidate's score, min-max normalised over the candidates. Similarity
    is the greatest cosine of its vector with the vectors of the candidates taken before, and 0
    where all of them are negative, or it has no vector. Of equal candidates, the first is taken. A
    score is the number of candidates below, plus 1.

    Parameters
    ----------
    name : 'mmr'
    device : of other rerankers; not used
    diversify : D, from 0, which keeps the order, to 1
    """

    needs_text = False
    compares = True
    reads_scores = True

    def __init__(self, name: str = 'mmr', device: str = 'cpu', diversify: float = DIVERSIFY):
        if not 0 <= diversify <= 1:
            raise InputError(f'diversify={diversify}: expected a number from 0 to 1')
        self.name = name
        self.diversify = diversify

    def identity(self) -> Mapping[str, Any]:
        identity = {**super().identity(), 'diversify': self.diversify}
        if self.documents is not None:
            identity['vectors_sha256'] = self.documents.vectors_sha256
        return identity

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """n for the first of n candidates, 1 for the last: float64 (n,) a query."""
        scores: Scores = []
        for candidates in lists:
            order = self._order(candidates)
            n = len(order)
            of_list = np.empty(n, np.float64)
            of_list[order] = np.arange(n, 0, -1)
            scores.append(of_list)
            on_progress(n)
        return scores

    def _order(self, candidates: Ranking) -> list[int]:
        """The rows of the candidates in their new order."""
        if not len(candidates):
            return []
        vectors = self.index.vectors(candidates.docids)
        relevance = scaled(candidates.scores, Normalization.MINMAX)
        return mmr_order(relevance, cosines(vectors, candidates.docids), self.diversify)

    def reason(self, query: str, hit: Candidate) -> str:
        return f'ranked for what is relevant and new (MMR, {self.diversify:g})'


def mmr_order(
    relevance: NDArray[np.floating], similarity: NDArray[np.floating], diversify: float
) -> list[int]:
    """The rows of candidates by maximal marginal relevance.

    Parameters
    ----------
    relevance : of each candidate, (n,)
    similarity : of each two candidates, (n, n)
    diversify : the share of similarity, 0 to 1
    """
    n = len(relevance)
    redundancy = np.zeros(n)
    is_left = np.ones(n, np.bool_)
    order: list[int] = []
    for _ in range(n):
        marginal = (1 - diversify) * relevance - diversify * redundancy
        marginal[~is_left] = -np.inf
        best = int(np.argmax(marginal))
        redundancy = np.maximum(redundancy, similarity[best])
        order.append(best)
        is_left[best] = False
    return order


def cosines(
    vectors: Mapping[str, NDArray[np.float32]], docids: Sequence[str]
) -> NDArray[np.float64]:
    """The cosine of the vectors of each two documents, float64 (n, n).

    It is 0 for a document without a vector, or whose vector is 0.
    """
    dimension = max((len(vector) for vector in vectors.values()), default=1)
    rows = [vectors.get(docid, np.zeros(dimension, np.float32)) for docid in docids]
    matrix = np.array(rows, np.float64)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(norms > 0, norms, 1.0)
    products: NDArray[np.float64] = matrix @ matrix.T
    return products

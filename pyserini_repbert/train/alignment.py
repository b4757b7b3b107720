"""Rankings of a topic side by side, and the weights under which their sum ranks best by nDCG@10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.fusion.fusing import scaled
from pyserini_repbert.fusion.methods import Normalization
from pyserini_repbert.ranking import Ranking

CUT = 10  # of nDCG
_WEIGHTS = np.linspace(0, 1, 21)
_SMOOTHED = 5  # neighbouring weights whose means are averaged before the best is chosen

Grades = Mapping[str, int]  # of a topic's relevant passages, by docid


@dataclass(frozen=True)
class Alignment:
    """The rankings of one topic side by side, over all their passages.

    Attributes
    ----------
    scores : float64 (n rankings, m), min-max normalised, 0 where a ranking lacks the passage
    gains : float64 (m,); of passages with equal scores, the first one here ranks first
    ideal : the discounted gain of the best ranking possible
    """

    scores: NDArray[np.float64]
    gains: NDArray[np.float64]
    ideal: float

    @classmethod
    def of(cls, rankings: Sequence[Ranking], grades: Grades) -> Alignment:
        """Rankings that are to be fused: equal scores are ordered by docid."""
        docids = sorted({docid for ranking in rankings for docid in ranking.docids})
        scores = np.stack([_align_scores(ranking, docids) for ranking in rankings])
        return cls(scores, _gains(docids, grades), _ideal(grades))

    @classmethod
    def of_reranked(
        cls, ranking: Ranking, reranked: Ranking, *, n_read: int, grades: Grades
    ) -> Alignment:
        """A ranking and its best `n_read` passages reranked: equal scores keep the ranking's order.

        The passages that are not read stay below in their order, whatever the weights.
        """
        head = ranking[:n_read]
        rest = ranking[n_read : n_read + CUT]
        docids = [*head.docids, *rest.docids]
        below = -np.arange(1.0, len(rest) + 1)
        before = _align_scores(head, head.docids)
        after = _align_scores(reranked, head.docids)
        scores = np.stack([np.append(before, below), np.append(after, below)])
        return cls(scores, _gains(docids, grades), _ideal(grades))

    def values(self, *weights: Sequence[float]) -> NDArray[np.float64]:
        """nDCG@10 under each set of weights, float64 (n sets,)."""
        # no matrix product: its rounding may differ between columns and part equal scores
        totals = (np.array(weights)[:, :, np.newaxis] * self.scores).sum(axis=1)
        best = np.argsort(-totals, axis=1, kind='stable')[:, :CUT]
        return np.array([_discount(self.gains[order]) / self.ideal for order in best])


def ndcg(ranking: Ranking, grades: Grades) -> float:
    """nDCG@10 of a ranking."""
    return _discount(_gains(ranking.docids[:CUT], grades)) / _ideal(grades)


def learn_weights(topics: Sequence[Alignment]) -> tuple[float, ...]:
    """Weights that sum to 1, one for each ranking.

    Greedy: adds one ranking at a time with its best weight, which has the greatest mean nDCG@10
    after averaging over its neighbours, for one topic alone can move the greatest mean.
    """
    weights, *others = np.eye(len(topics[0].scores))
    for other in others:
        tried = [(1 - weight) * weights + weight * other for weight in _WEIGHTS]
        means = np.mean([topic.values(*tried) for topic in topics], axis=0)
        padded = np.pad(means, _SMOOTHED // 2, mode='edge')
        smooth = np.convolve(padded, np.ones(_SMOOTHED), 'valid')
        weights = tried[int(smooth.argmax())]
    return tuple(float(round(weight, 6)) for weight in weights)


def _align_scores(ranking: Ranking, docids: Sequence[str]) -> NDArray[np.float64]:
    """The ranking's scores in the order of `docids`, float64 (m,)."""
    normalised = scaled(ranking.scores, Normalization.MINMAX).tolist()
    score_of = dict(zip(ranking.docids, normalised, strict=True))
    return np.array([score_of.get(docid, 0.0) for docid in docids], dtype=np.float64)


def _gains(docids: Sequence[str], grades: Grades) -> NDArray[np.float64]:
    return np.array([grades.get(docid, 0) for docid in docids], dtype=np.float64)


def _ideal(grades: Grades) -> float:
    best = sorted(grades.values(), reverse=True)[:CUT]
    return _discount(np.array(best, dtype=np.float64))


def _discount(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())

"""The weights under which the sum of several rankings' scores ranks best by nDCG@10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
class AlignedRankings:
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

    def values(self, *weights: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """nDCG@10 under each set of weights, float64 (n sets,)."""
        # A matrix product may round equal scores differently, and so part them.
        weighted = np.array(weights)[:, :, np.newaxis] * self.scores
        totals = weighted.sum(axis=1)
        best = _best_columns(totals)
        return np.array([_discounted(self.gains[order]) / self.ideal for order in best])

    @cached_property
    def values_of_two(self) -> NDArray[np.float64]:
        """nDCG@10 of the first two rankings under each weight of the second, float64 (21,).

        A topic teaches the weights of several folds.
        """
        alone = np.eye(len(self.scores))
        return self.values(*_mixtures(alone[0], alone[1]))


def align(rankings: Sequence[Ranking], grades: Grades) -> AlignedRankings:
    """The rankings of a topic, to be fused. Equal scores are ordered by docid."""
    distinct: set[str] = set()
    for ranking in rankings:
        distinct.update(ranking.docids)
    docids = sorted(distinct)
    scores = np.stack([_scores_of(docids, ranking) for ranking in rankings])
    return AlignedRankings(scores, _gains(docids, grades), _ideal(grades))


def align_reranked(
    ranking: Ranking, reranked: Ranking, *, n_read: int, grades: Grades
) -> AlignedRankings:
    """A topic's ranking, and its best `n_read` passages reranked.

    Equal scores keep the order of `ranking`. The passages that are not read stay below in their
    order, whatever the weights.
    """
    head = ranking[:n_read]
    rest = ranking[n_read : n_read + CUT]
    below = -np.arange(1.0, len(rest) + 1)
    before = np.append(_scores_of(head.docids, ranking=head), below)
    after = np.append(_scores_of(head.docids, ranking=reranked), below)
    gains = _gains([*head.docids, *rest.docids], grades)
    return AlignedRankings(np.stack([before, after]), gains, _ideal(grades))


def ndcg(ranking: Ranking, grades: Grades) -> float:
    """nDCG@10 of a ranking."""
    return _discounted(_gains(ranking.docids[:CUT], grades)) / _ideal(grades)


def learn_weights(topics: Sequence[AlignedRankings]) -> tuple[float, ...]:
    """Weights that sum to 1, one for each ranking.

    Greedy: adds one ranking at a time with its best weight. The best weight has the greatest mean
    nDCG@10 after averaging over its neighbours, because one topic alone can move the greatest mean.
    """
    alone = np.eye(len(topics[0].scores))
    weights = alone[0]
    for number, added in enumerate(alone[1:], 1):
        mixtures = _mixtures(weights, added)
        if number == 1:
            values = [topic.values_of_two for topic in topics]
        else:
            values = [topic.values(*mixtures) for topic in topics]
        means = np.mean(values, axis=0)
        padded = np.pad(means, _SMOOTHED // 2, mode='edge')
        smooth = np.convolve(padded, np.ones(_SMOOTHED), 'valid')
        weights = mixtures[int(smooth.argmax())]
    return tuple(float(round(weight, 6)) for weight in weights)


def _mixtures(
    weights: NDArray[np.float64], added: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """The weights before, with each weight of the ranking that is added."""
    return [(1 - weight) * weights + weight * added for weight in _WEIGHTS]


def _scores_of(docids: Sequence[str], ranking: Ranking) -> NDArray[np.float64]:
    """The min-max normalised scores of these passages in a ranking, float64 (m,)."""
    normalised = scaled(ranking.scores, Normalization.MINMAX).tolist()
    score_of = dict(zip(ranking.docids, normalised, strict=True))
    return np.array([score_of.get(docid, 0.0) for docid in docids], dtype=np.float64)


def _gains(docids: Sequence[str], grades: Grades) -> NDArray[np.float64]:
    return np.array([grades.get(docid, 0) for docid in docids], dtype=np.float64)


def _ideal(grades: Grades) -> float:
    best = sorted(grades.values(), reverse=True)[:CUT]
    return _discounted(np.array(best, dtype=np.float64))


def _best_columns(totals: NDArray[np.float64]) -> NDArray[np.int64]:
    """The columns of the `CUT` greatest values of each row, greatest first, int64 (n, at most
    `CUT`). If values are equal, the first ones.

    Only columns with a value among the best of some row are sorted.
    """
    n_columns = totals.shape[1]
    near = np.arange(n_columns)
    if n_columns > CUT:
        least = np.partition(totals, -CUT, axis=1)[:, [-CUT]]
        near = np.flatnonzero((totals >= least).any(axis=0))
    order = np.argsort(-totals[:, near], axis=1, kind='stable')[:, :CUT]
    return near[order]


def _discounted(gains: NDArray[np.float64]) -> float:
    discounts = np.log2(np.arange(2, len(gains) + 2))
    return float((gains / discounts).sum())

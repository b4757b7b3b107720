"""What `adapt` returns: what was learnt, and what it gains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.judged_topics import Values
from pyserini_repbert.evaluate.significance import paired_t_test

_CONVINCING = 0.05  # the p below which a gain is more than noise


@dataclass(frozen=True)
class Estimate:
    """What searching with an adaptation gains over the best ranking that needs no judgments.

    Attributes
    ----------
    topics : how many topics were learnt from
    texts : how many of their texts differ: each counts once
    baseline : the best ranking that needs no judgments
    untuned : its mean nDCG@10
    adapted : mean nDCG@10 of topics held out
    gain, standard_error : of `adapted` over `untuned`
    p : of the paired t-test over texts, two-sided
    """

    topics: int
    texts: int
    baseline: str
    untuned: float
    adapted: float
    gain: float
    standard_error: float
    p: float

    @property
    def is_convincing(self) -> bool:
        """Whether the gain is more than noise."""
        return self.gain > 0 and self.p < _CONVINCING


@dataclass(frozen=True)
class Adaptation:
    """What was learnt from all topics, and what the same way of learning gave on topics held out.

    Attributes
    ----------
    query_map : A, float32 (d, d)
    weights : of each ranking's min-max normalised scores, dense first; they sum to 1
    rerank_weight : the reranker's share of the score; None without one
    n_topics : how many topics were learnt from
    texts : their different texts, in the order of all values
    untuned : values of each ranking alone, of each fusion that needs no judgments, and of the best
        of them reranked
    steps : values with the query map, then also fused, then also reranked, each learnt from the
        topics of other folds
    """

    query_map: NDArray[np.float32]
    weights: tuple[float, ...]
    rerank_weight: float | None
    n_topics: int
    texts: tuple[str, ...]
    untuned: dict[str, Values]
    steps: dict[str, Values]

    @property
    def held_out(self) -> Values:
        """With all that was learnt from the other folds."""
        return list(self.steps.values())[-1]

    def estimate(self) -> Estimate:
        """The gain over the best of `untuned`, and its significance."""
        baseline = best_name(self.untuned)
        best = self.untuned[baseline]
        gains = self.held_out - best
        _, p = paired_t_test(self.held_out.tolist(), best.tolist())
        return Estimate(
            topics=self.n_topics,
            texts=len(gains),
            baseline=baseline,
            untuned=float(best.mean()),
            adapted=float(self.held_out.mean()),
            gain=float(gains.mean()),
            standard_error=float(gains.std(ddof=1)) / math.sqrt(len(gains)),
            p=p,
        )


def best_name(values: dict[str, Values]) -> str:
    """The name with the greatest mean; the first of equal ones."""
    return max(values, key=lambda name: values[name].mean())

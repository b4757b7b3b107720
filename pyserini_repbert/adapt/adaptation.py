"""What `adapt` returns: what was learned, which way of searching won, and what that gains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.judged_topics import Values
from pyserini_repbert.evaluate.significance import (
    TTest,
    bootstrap_gain,
    paired_t_test,
    t_interval,
)
from pyserini_repbert.evaluate.studies.fusion import RunFusion
from pyserini_repbert.ranking import normal_form

_CONVINCING = 0.05  # the p below which a gain is more than noise
# A gain that is less sure is worth its risk below this expected loss.
_MOST_LOSS = 0.01
# Means that differ by less are equal: sums of floats differ in their last digits.
_DIGITS = 9


@dataclass(frozen=True)
class Estimate:
    """What another way of searching gains over the present search, on held-out topics.

    What is offered is the winner. If the present search wins, what was learned is offered.

    Attributes
    ----------
    topics : how many topics were learned from
    texts : how many of their texts differ: each counts once
    now : the present search
    winner : of all ways of searching, the one with the greatest mean over all topics
    offered : what is offered
    before : mean nDCG@10 of the present search
    after : mean nDCG@10 of what is offered; both what was learned and the choice of a winner come
        from topics of other folds
    gain, standard_error : of `after` over `before`
    low, high : the 95% interval of the gain, by Student's t over texts
    p : of the paired t-test over texts, two-sided
    probability, expected_loss : of the gain, as in `BootstrappedGain`
    agrees : whether the judgments fit their own questions better than others, by the present
        search: otherwise they say little, or it finds next to nothing
    """

    topics: int
    texts: int
    now: str
    winner: str
    offered: str
    before: float
    after: float
    gain: float
    standard_error: float
    low: float
    high: float
    p: float
    probability: float
    expected_loss: float
    agrees: bool

    @property
    def is_convincing(self) -> bool:
        """Whether what is offered is better than the present search, by more than noise."""
        return self.gain > 0 and self.p < _CONVINCING

    @property
    def is_worth_using(self) -> bool:
        """Whether what is offered is convincing, or better on the average at little risk."""
        is_likely = self.gain > 0 and self.expected_loss < _MOST_LOSS
        return self.is_convincing or (self.agrees and is_likely)

    @property
    def keeps_now(self) -> bool:
        """Whether nothing was better than the present search."""
        return self.winner == self.now


@dataclass(frozen=True)
class UntunedWay:
    """A way of searching that needs no judgments.

    Attributes
    ----------
    fusion : which rankings are fused, in which order, and how; a single ranking is not fused
    rerank_weight : the reranker's share of the score; None: nothing is reranked
    """

    fusion: RunFusion
    rerank_weight: float | None = None


@dataclass(frozen=True)
class UntunedSearches:
    """The searches that need no judgments.

    Attributes
    ----------
    now : the name of the present search
    values : of each search, by its name; first the present search
    ways : those that can be stored
    agreement : nDCG@10 of the present search, without a reranker, minus its nDCG@10 by the
        judgments of other texts
    """

    now: str
    values: dict[str, Values]
    ways: dict[str, UntunedWay]
    agreement: TTest


@dataclass(frozen=True)
class Adaptation:
    """What was learned from all topics, and what each way of searching gave on held-out topics.

    Attributes
    ----------
    query_map : A, float32 (d, d)
    weights : of each ranking's min-max normalised scores, dense first; they sum to 1
    rerank_weight : the reranker's share of the score; None without one
    n_topics : how many topics were learned from
    texts : their different texts, in the order of all values
    untuned : the searches that need no judgments
    steps : values with the query map, then also fused, then also reranked, each learned from the
        topics of other folds
    chosen : values of the best of all ways, which was chosen by the topics of other folds
    fold_maps : of each fold, the map that all other folds taught
    fold_of_text : of each text, the fold that held it out
    """

    query_map: NDArray[np.float32]
    weights: tuple[float, ...]
    rerank_weight: float | None
    n_topics: int
    texts: tuple[str, ...]
    untuned: UntunedSearches
    steps: dict[str, Values]
    chosen: Values
    fold_maps: tuple[NDArray[np.float32], ...]
    fold_of_text: tuple[int, ...]

    def fold_of(self, text: str) -> int:
        """The fold whose map was learned without this text; the first one for a text that no map
        was learned from.
        """
        folds = {
            normal_form(known): fold
            for known, fold in zip(self.texts, self.fold_of_text, strict=True)
        }
        return folds.get(normal_form(text), 0)

    @property
    def learned(self) -> str:
        """The name of the search with all that was learned."""
        return list(self.steps)[-1]

    @property
    def held_out(self) -> Values:
        """With all that was learned from the other folds."""
        return self.steps[self.learned]

    @property
    def winner(self) -> str:
        """The way with the greatest mean.

        Among equal ones, the present search comes first, then the untuned ways.
        """
        return best_name({**self.untuned.values, self.learned: self.held_out})

    @property
    def offered(self) -> str:
        """The winner; what was learned, if the winner is the present search."""
        return self.learned if self.winner == self.untuned.now else self.winner

    @property
    def before(self) -> Values:
        """By the present search."""
        return self.untuned.values[self.untuned.now]

    @property
    def after(self) -> Values:
        """By what is offered."""
        return self.held_out if self.winner == self.untuned.now else self.chosen

    def estimate(self) -> Estimate:
        """The gain of what is offered over the present search, and its significance."""
        before = self.before.tolist()
        after = self.after.tolist()
        gains = self.after - self.before
        interval = t_interval(after, before)
        bootstrapped = bootstrap_gain(after, before)
        standard_error = float(gains.std(ddof=1)) / math.sqrt(len(gains))
        agreement = self.untuned.agreement
        agrees = agreement.t > 0 and agreement.p < _CONVINCING
        return Estimate(
            topics=self.n_topics,
            texts=len(gains),
            now=self.untuned.now,
            winner=self.winner,
            offered=self.offered,
            before=float(self.before.mean()),
            after=float(self.after.mean()),
            gain=float(gains.mean()),
            standard_error=standard_error,
            low=interval.low,
            high=interval.high,
            p=paired_t_test(after, before).p,
            probability=bootstrapped.probability,
            expected_loss=bootstrapped.expected_loss,
            agrees=agrees,
        )


def best_name(values: Mapping[str, Values]) -> str:
    """The name with the greatest mean; the first if several are equal."""
    return max(values, key=lambda name: round(float(values[name].mean()), _DIGITS))

"""Paired comparison of two runs over the same topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation


class TTest(NamedTuple):
    """The result of a paired t-test: t, and the two-sided p."""

    t: float
    p: float


class Comparison(NamedTuple):
    """A run against a baseline in one measure.

    Attributes
    ----------
    baseline, mean : of the baseline and of the run, as in `Evaluation.means`
    p : two-sided, not corrected for the number of comparisons
    wins : topics in which the run is better
    """

    measure: str
    baseline: float
    mean: float
    difference: float
    t: float
    p: float
    wins: int
    ties: int
    losses: int


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> TTest:
    """t and two-sided p of the paired t-test of `first` against `second`.

    (0, 1) if all pairs are equal; (±inf, 0) if all differ by the same amount.
    """
    if len(first) != len(second) or len(first) < 2:
        raise InputError(
            f'a paired t-test needs two or more pairs, it was given {len(first)} and '
            f'{len(second)} values'
        )
    differences = [a - b for a, b in zip(first, second, strict=True)]
    if not any(differences):
        return TTest(0.0, 1.0)
    if len(set(differences)) == 1:
        # Without variance, the difference is certain.
        return TTest(math.copysign(math.inf, differences[0]), 0.0)
    from scipy.stats import ttest_rel

    result = ttest_rel(first, second)
    return TTest(float(result.statistic), float(result.pvalue))


def compare(baseline: Evaluation, other: Evaluation) -> list[Comparison]:
    """`other` against `baseline`, measure by measure.

    Both were evaluated with the same qrels and measures.
    """
    comparisons = []
    for measure, values in baseline.values.items():
        old = list(values.values())
        new = [other.values[measure][qid] for qid in values]
        test = paired_t_test(new, old)
        wins = sum(a > b for a, b in zip(new, old, strict=True))
        losses = sum(a < b for a, b in zip(new, old, strict=True))
        comparison = Comparison(
            measure=measure,
            baseline=baseline.means[measure],
            mean=other.means[measure],
            difference=other.means[measure] - baseline.means[measure],
            t=test.t,
            p=test.p,
            wins=wins,
            ties=len(old) - wins - losses,
            losses=losses,
        )
        comparisons.append(comparison)
    return comparisons

"""Paired comparison of two runs over the same topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation


class Comparison(NamedTuple):
    """A run against a baseline in one measure."""

    measure: str
    baseline: float  # as in `Evaluation.means`
    mean: float  # of the run, likewise
    difference: float
    t: float  # of the paired t-test
    p: float  # two-sided, not corrected for the number of comparisons
    wins: int  # topics in which the run is better
    ties: int
    losses: int


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
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
        return 0.0, 1.0
    if len(set(differences)) == 1:  # no variance: the difference is certain
        return (float('inf') if differences[0] > 0 else float('-inf')), 0.0
    from scipy.stats import ttest_rel

    result = ttest_rel(first, second)
    return float(result.statistic), float(result.pvalue)


def compare(baseline: Evaluation, other: Evaluation) -> list[Comparison]:
    """`other` against `baseline`, measure by measure; both evaluated with the same qrels and
    measures.
    """
    comparisons = []
    for measure, values in baseline.values.items():
        old = list(values.values())
        new = [other.values[measure][qid] for qid in values]
        t, p = paired_t_test(new, old)
        wins = sum(a > b for a, b in zip(new, old, strict=True))
        losses = sum(a < b for a, b in zip(new, old, strict=True))
        means = baseline.means[measure], other.means[measure]
        ties = len(old) - wins - losses
        comparisons.append(
            Comparison(measure, *means, means[1] - means[0], t, p, wins, ties, losses)
        )
    return comparisons

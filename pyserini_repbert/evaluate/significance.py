"""Paired comparison of two runs over the same topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation


class Comparison(NamedTuple):
    """A run against a baseline in one measure.

    Attributes
    ----------
    measure : its name
    baseline, mean : aggregates of the baseline and of the run, as in `Evaluation.means`
    difference : `mean` less `baseline`
    t, p : statistic and two-sided p-value of the paired t-test, not corrected for the number of comparisons
    wins, ties, losses : number of topics in which the run is better, equal, worse
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


def paired_t_test(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """t and two-sided p of the paired t-test of `first` against `second`.

    (0, 1) if all pairs are equal; (±inf, 0) if all differ by the same amount.

    Raises InputError for lengths that differ, or fewer than two pairs.
    """
    if len(first) != len(second) or len(first) < 2:
        raise InputError(f'a paired t-test needs two or more pairs, it was given {len(first)} and {len(second)} values')
    differences = [a - b for a, b in zip(first, second, strict=True)]
    if not any(differences):
        return 0.0, 1.0
    if len(set(differences)) == 1:  # no variance: the difference is certain
        return (float('inf') if differences[0] > 0 else float('-inf')), 0.0
    from scipy.stats import ttest_rel

    result = ttest_rel(first, second)
    return float(result.statistic), float(result.pvalue)


def compare(baseline: Evaluation, other: Evaluation) -> list[Comparison]:
    """`other` against `baseline`, measure by measure; both evaluated with the same qrels and measures.

    Raises InputError for fewer than two judged topics.
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
        comparisons.append(Comparison(measure, *means, means[1] - means[0], t, p, wins, ties, losses))
    return comparisons

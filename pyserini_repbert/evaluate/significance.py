"""Paired tests and intervals of two runs over the same topics, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation

SAMPLES = 10_000
# Of 20 intervals, 19 have the true difference.
_CONFIDENCE = 0.95
# A smaller p is called significant.
LEVEL = 0.05
# The most topics for which all assignments of signs are tried.
_MOST_EXACT = 20
# Differences that are equal on paper differ by less than this share of their size.
_ROUNDING = 1e-9
# Numbers that a test has in the memory at a time.
_NUMBERS_AT_ONCE = 2_000_000


class TTest(NamedTuple):
    """The result of a paired t-test: t, and the two-sided p."""

    t: float
    p: float


@dataclass(frozen=True)
class PairedValues:
    """The values of two runs in one measure, for the same topics in the same order."""

    baseline: list[float]
    other: list[float]


class SignificanceTest(Choice, what='significance test'):
    """How p is computed: by the paired t-test, or by Fisher's randomisation test."""

    T = 't'
    RANDOMIZATION = 'randomization'


TEST_NAMES = {
    SignificanceTest.T: 'paired t-test',
    SignificanceTest.RANDOMIZATION: "Fisher's randomisation test",
}


class Interval(NamedTuple):
    """The interval of a difference, with some confidence."""

    low: float
    high: float

    def of_sum(self, n: int) -> Interval:
        """The interval of a sum of n values; this one is the interval of their mean."""
        return Interval(n * self.low, n * self.high)


class Comparison(NamedTuple):
    """A run against a baseline in one measure.

    Attributes
    ----------
    baseline, mean : of the baseline and of the run, as in `Evaluation.means`
    t : of the paired t-test
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

    (0, 1) if all pairs are equal; (±inf, 0) if all differ by the same amount. Raises InputError for
    fewer than two pairs, or lists of different lengths.
    """
    if len(first) != len(second) or len(first) < 2:
        raise InputError(
            f'a paired t-test needs two or more pairs, it was given {len(first)} and '
            f'{len(second)} values'
        )
    differences = [a - b for a, b in zip(first, second, strict=True)]
    if not any(differences):
        return TTest(0.0, 1.0)
    if _are_alike(differences):
        # Without variance, the difference is certain.
        return TTest(math.copysign(math.inf, differences[0]), 0.0)
    from scipy.stats import ttest_rel

    result = ttest_rel(first, second)
    return TTest(float(result.statistic), float(result.pvalue))


def _are_alike(differences: Sequence[float]) -> bool:
    """Whether differences are the same except for the rounding of what was subtracted."""
    spread = max(differences) - min(differences)
    return spread <= _ROUNDING * max(map(abs, differences))


def randomization_test(
    first: Sequence[float], second: Sequence[float], samples: int = SAMPLES, seed: int = 0
) -> float:
    """The two-sided p of Fisher's randomisation test of the mean difference.

    Under the null hypothesis, the sign of each topic's difference is random. p is the share of
    assignments of signs whose mean difference is at least as large as the one observed: exact if
    all of them are at most `samples`, otherwise estimated from that many, the observed one counted
    too (Smucker, Allan and Carterette, CIKM 2007).

    Parameters
    ----------
    first, second : values of the same topics
    samples : random assignments
    seed : draws them
    """
    import numpy as np

    differences = np.subtract(first, second)
    n = len(differences)
    observed = abs(float(differences.sum()))
    # Sums that are equal on paper may differ by rounding, even near 0.
    threshold = observed - _ROUNDING * float(np.abs(differences).sum())
    if n <= _MOST_EXACT and 2**n <= samples:
        signs = np.array(list(product((-1.0, 1.0), repeat=n)))
        return float(np.mean(np.abs(signs @ differences) >= threshold))
    random = np.random.default_rng(seed)
    extreme = 0
    most = _samples_at_once(n)
    # scipy's permutation_test takes 4.0 s instead of 0.6 s for 6,980 topics. Its two-sided p is
    # twice the smaller tail, not the share of mean differences that are as large.
    for start in range(0, samples, most):
        size = min(most, samples - start)
        signs = random.integers(0, 2, (size, n), dtype=np.int8) * 2.0 - 1.0
        extreme += int(np.count_nonzero(np.abs(signs @ differences) >= threshold))
    return (extreme + 1) / (samples + 1)


def bootstrap_interval(
    first: Sequence[float],
    second: Sequence[float],
    confidence: float = 0.95,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Interval:
    """The interval of the mean difference of `first` from `second`, by bootstrap percentiles.

    Topics are drawn with replacement (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    chapter 13).

    Parameters
    ----------
    first, second : values of the same topics
    confidence : 0.95: 19 of 20 such intervals have the true difference
    samples : draws of as many topics as there are
    seed : draws them
    """
    import numpy as np
    from scipy.stats import bootstrap

    differences = np.subtract(first, second)
    n = len(differences)
    if n == 1:
        # scipy refuses it. Every draw is this topic.
        return Interval(float(differences[0]), float(differences[0]))
    interval = bootstrap(
        (differences,),
        np.mean,
        n_resamples=samples,
        batch=_samples_at_once(n),
        confidence_level=confidence,
        method='percentile',
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


@dataclass(frozen=True)
class BootstrappedGain:
    """What a bootstrap over topics says of a mean difference.

    Attributes
    ----------
    probability : the share of draws whose mean difference is above 0
    expected_loss : the mean over draws of how far the mean difference is below 0
    """

    probability: float
    expected_loss: float


def bootstrap_gain(first: Sequence[float], second: Sequence[float]) -> BootstrappedGain:
    """How surely the mean of `first` is above the mean of `second`, by `SAMPLES` draws as in
    `bootstrap_interval`.
    """
    import numpy as np

    differences = np.subtract(first, second)
    n = len(differences)
    random = np.random.default_rng(0)
    n_above = 0
    loss = 0.0
    most = _samples_at_once(n)
    for start in range(0, SAMPLES, most):
        size = min(most, SAMPLES - start)
        drawn = random.integers(0, n, (size, n))
        means = differences[drawn].mean(axis=1)
        # What is equal on paper may differ by rounding.
        n_above += int(np.count_nonzero(means > _ROUNDING))
        loss += float(np.maximum(-means, 0.0).sum())
    return BootstrappedGain(n_above / SAMPLES, loss / SAMPLES)


def t_interval(first: Sequence[float], second: Sequence[float]) -> Interval:
    """The interval of the mean difference of `first` from `second`, by Student's t, with 95%
    confidence.

    It contains 0 if the p of `paired_t_test` is at least 0.05.

    Parameters
    ----------
    first, second : values of the same two or more topics
    """
    import numpy as np
    from scipy.stats import t

    differences = np.subtract(first, second)
    n = len(differences)
    mean = float(differences.mean())
    standard_error = float(differences.std(ddof=1)) / math.sqrt(n)
    reach = float(t.ppf((1 + _CONFIDENCE) / 2, n - 1)) * standard_error
    return Interval(mean - reach, mean + reach)


def _samples_at_once(n: int) -> int:
    """How many samples of n numbers are drawn together."""
    return max(1, _NUMBERS_AT_ONCE // max(n, 1))


def holm(ps: Sequence[float]) -> list[float]:
    """p of several comparisons, corrected by Holm's step-down method, in their order.

    The chance of any wrong claim is kept below the level at which they are compared (Holm, A simple
    sequentially rejective multiple test procedure, 1979).
    """
    order = sorted(range(len(ps)), key=lambda position: ps[position])
    corrected = [0.0] * len(ps)
    greatest = 0.0
    for rank, position in enumerate(order):
        greatest = max(greatest, min(1.0, (len(ps) - rank) * ps[position]))
        corrected[position] = greatest
    return corrected


def compare(
    baseline: Evaluation,
    other: Evaluation,
    test: SignificanceTest = SignificanceTest.T,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[Comparison]:
    """`other` against `baseline`, measure by measure.

    Both were evaluated with the same qrels and measures.

    Parameters
    ----------
    baseline, other : the values to compare
    test : what p is of
    samples, seed : of the randomisation test
    """
    chosen = SignificanceTest(test)
    comparisons = []
    for measure in baseline.values:
        pairs = paired_values(baseline, other, measure)
        t_test = paired_t_test(pairs.other, pairs.baseline)
        p = t_test.p
        if chosen is SignificanceTest.RANDOMIZATION:
            p = randomization_test(pairs.other, pairs.baseline, samples, seed)
        wins = 0
        losses = 0
        for new, old in zip(pairs.other, pairs.baseline, strict=True):
            wins += new > old
            losses += new < old
        comparison = Comparison(
            measure=measure,
            baseline=baseline.means[measure],
            mean=other.means[measure],
            difference=other.means[measure] - baseline.means[measure],
            t=t_test.t,
            p=p,
            wins=wins,
            ties=len(pairs.baseline) - wins - losses,
            losses=losses,
        )
        comparisons.append(comparison)
    return comparisons


def paired_values(baseline: Evaluation, other: Evaluation, measure: str) -> PairedValues:
    """The values of two runs in a measure, topic by topic."""
    values = baseline.values[measure]
    return PairedValues(
        baseline=list(values.values()),
        other=[other.values[measure][qid] for qid in values],
    )

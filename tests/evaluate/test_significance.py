import math

import numpy as np
import pytest
from scipy.stats import permutation_test

from pyserini_repbert.evaluate import (
    bootstrap_interval,
    compare,
    evaluate,
    holm,
    paired_t_test,
    parse_measures,
    randomization_test,
)
from pyserini_repbert.evaluate.comparisons import ComparisonSettings, compare_with_first
from pyserini_repbert.evaluate.significance import SignificanceTest
from pyserini_repbert.ranking import Ranking


def test_t_test_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3); with two degrees of freedom p = 1 -
    t / sqrt(2 + t^2).
    """
    t, p = paired_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert t == pytest.approx(2 * math.sqrt(3))
    assert p == pytest.approx(1 - t / math.sqrt(2 + t * t))
    assert paired_t_test([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx((-t, p))


def test_differences_without_variance():
    assert paired_t_test([0.5, 0.25], [0.5, 0.25]) == (0.0, 1.0)
    assert paired_t_test([1.0, 2.0], [0.0, 1.0]) == (math.inf, 0.0)
    assert paired_t_test([0.0, 1.0], [1.0, 2.0]) == (-math.inf, 0.0)


def evaluated(lists):
    """The reciprocal ranks of a, which is relevant for four topics, in a run of these lists."""
    qrels = {'0': {'a': 1}, '1': {'a': 1}, '2': {'a': 1}, '3': {'a': 1}}
    run = {}
    for qid, docids in lists.items():
        run[qid] = Ranking(docids, [1.0 / rank for rank in range(1, len(docids) + 1)])
    return evaluate(run, qrels, parse_measures(['MRR@10']))


def test_compare():
    """1, 1/2, 1/2, 0 against 1/2, 1, 1, 1/2: differences -1/2, 1/2, 1/2, 1/2, of which the mean is
    1/4, with the standard error 1/4.
    """
    baseline = evaluated({'0': ['a'], '1': ['x', 'a'], '2': ['x', 'a']})
    other = evaluated({'0': ['x', 'a'], '1': ['a'], '2': ['a'], '3': ['x', 'a']})
    (comparison,) = compare(baseline, other)
    assert comparison.measure == 'MRR@10'
    assert (comparison.baseline, comparison.mean, comparison.difference) == (0.5, 0.75, 0.25)
    assert (comparison.wins, comparison.ties, comparison.losses) == (3, 0, 1)
    assert comparison.t == pytest.approx(1.0)


@pytest.mark.filterwarnings('error')
def test_differences_that_are_equal_on_paper():
    """0.3 - 0.2 and 0.4 - 0.3 differ as floats."""
    assert paired_t_test([0.3, 0.4, 0.5], [0.2, 0.3, 0.4]) == (math.inf, 0.0)


def test_randomization_by_hand():
    """Of the 8 assignments of signs to 1, 2, 3, those of +++ and --- reach the mean 2."""
    assert randomization_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(2 / 8)
    assert randomization_test([1.0, 2.0], [1.0, 2.0]) == 1.0
    # Of 16 assignments to 0.1 four times, two have the greatest sum, whatever floats add up to.
    assert randomization_test([0.1] * 4, [0.0] * 4) == pytest.approx(2 / 16)
    # No assignment has a mean nearer to 0 than 0, whatever floats add up to.
    assert randomization_test([0.1, 0.1, 0.1, 0.0], [0.0, 0.0, 0.0, 0.3]) == 1.0


def paired_values(n):
    random = np.random.default_rng(3)
    second = random.random(n)
    return second + random.normal(0.05, 0.2, n), second


def mean_difference(first, second, axis=-1):
    return np.mean(first - second, axis=axis)


@pytest.mark.parametrize('n', [10, 60])
def test_randomization_equals_scipy(n):
    """Exact for 10 topics, estimated for 60."""
    first, second = paired_values(n)
    expected = permutation_test(
        (first, second),
        mean_difference,
        permutation_type='samples',
        n_resamples=20_000,
        rng=np.random.default_rng(5),
    ).pvalue
    found = randomization_test(first, second, samples=20_000, seed=1)
    assert found == pytest.approx(expected, abs=1e-9 if n == 10 else 0.01)
    assert randomization_test(first, second, samples=20_000, seed=1) == found
    assert randomization_test(second, first, samples=20_000, seed=1) == found


def test_the_interval_by_hand():
    """Of the 27 draws of 0, 3 and 9, one has the mean 0, three have 1, three 7, and one 9."""
    values = [0.0, 3.0, 9.0]
    found = bootstrap_interval(values, [0.0] * 3, confidence=0.8, samples=20_000)
    assert found == (1.0, 7.0)
    wider = bootstrap_interval(values, [0.0] * 3, confidence=0.95, samples=20_000)
    assert wider == (0.0, 9.0)
    assert bootstrap_interval([2.0], [0.5]) == (1.5, 1.5)


def test_the_interval_fits_into_the_memory():
    """Of 10,000 draws of a collection's questions, 2 million numbers at a time are drawn."""
    import tracemalloc

    first, second = paired_values(7_000)
    tracemalloc.start()
    try:
        bootstrap_interval(first, second, samples=2_000)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 60e6


def test_the_interval_of_a_sum_is_about_the_sum():
    relevant = {'a': 1, 'b': 1, 'c': 1}
    qrels = {str(number): relevant for number in range(6)}
    few = {qid: Ranking(['a'], [1.0]) for qid in qrels}
    many = {qid: Ranking(['a', 'b', 'c'], [3.0, 2.0, 1.0]) for qid in qrels}
    measures = parse_measures(['NumRet', 'P@1'])
    evaluations = {'few': evaluate(few, qrels, measures), 'many': evaluate(many, qrels, measures)}
    of_sum, of_mean = compare_with_first(evaluations, ComparisonSettings(confidence=0.95))
    assert of_sum.comparison.difference == 12
    assert of_sum.interval == (12, 12)
    assert of_mean.interval == (0, 0)


def test_holm_by_hand():
    """0.01 x 4; 0.02 x 3; 0.03 x 2; then 0.04 x 1, which may not fall below the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_compare_by_the_randomization_test():
    baseline = evaluated({'0': ['a'], '1': ['x', 'a'], '2': ['x', 'a']})
    other = evaluated({'0': ['x', 'a'], '1': ['a'], '2': ['a'], '3': ['x', 'a']})
    (comparison,) = compare(baseline, other, SignificanceTest.RANDOMIZATION)
    # Of 16 signs of four halves, a sum of at least 1 has one minus or none, or the opposite.
    assert comparison.p == pytest.approx(10 / 16)

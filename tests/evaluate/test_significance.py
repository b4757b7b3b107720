import math

import pytest

from pyserini_repbert.evaluate import compare, evaluate, paired_t_test, parse_measures
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

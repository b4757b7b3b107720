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


def test_compare():
    qrels = {str(i): {'a': 1} for i in range(4)}
    first = {'0': ['a'], '1': ['x', 'a'], '2': ['x', 'a']}
    second = {'0': ['x', 'a'], '1': ['a'], '2': ['a'], '3': ['x', 'a']}
    measures = parse_measures(['MRR@10'])
    runs = [
        {qid: Ranking(docids, [2.0, 1.0][: len(docids)]) for qid, docids in lists.items()}
        for lists in (first, second)
    ]
    (found,) = compare(*(evaluate(run, qrels, measures) for run in runs))
    assert (found.measure, found.baseline, found.mean, found.difference) == (
        'MRR@10',
        0.5,
        0.75,
        0.25,
    )
    assert (found.wins, found.ties, found.losses) == (3, 0, 1)
    assert found.t == pytest.approx(1.0)

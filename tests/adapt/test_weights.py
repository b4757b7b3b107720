"""Rankings of a topic side by side, and the weights of their scores."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.adapt.weights import AlignedRankings, align, align_reranked, learn_weights
from pyserini_repbert.ranking import Ranking


@pytest.fixture
def aligned():
    """Passages a, b, c and x; b is relevant, c three times as much."""
    first = Ranking(['a', 'b', 'x'], [5.0, 4.0, 3.0])
    second = Ranking(['c', 'b'], [2.0, 1.0])
    return align([first, second], {'b': 1, 'c': 3})


def test_scores_are_aligned_by_docid_after_min_max(aligned):
    assert aligned.scores.tolist() == [[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    assert aligned.gains.tolist() == [0.0, 1.0, 3.0, 0.0]


def test_ndcg_under_weights(aligned):
    """The first ranking alone gives a b c x; with .6 for the second, c .6, a .4, b .2."""
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    first, second = aligned.values([1.0, 0.0], [0.4, 0.6])
    assert first == pytest.approx((1 / math.log2(3) + 3 / math.log2(4)) / ideal)
    assert second == pytest.approx((3 / math.log2(2) + 1 / math.log2(4)) / ideal)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([2, 5, 1000]))
def test_ndcg_is_that_of_sorting_all_passages(seed, n_passages, n_scores):
    """Of equal sums, the first passage is the better one."""
    random = np.random.default_rng(seed)
    scores = random.integers(n_scores, size=(2, n_passages)).astype(float)
    gains = random.integers(3, size=n_passages).astype(float)
    values = AlignedRankings(scores, gains, ideal=1.0).values([1.0, 0.0], [0.5, 0.5])
    for value, totals in zip(values, (scores[0], scores.mean(axis=0)), strict=True):
        order = sorted(range(n_passages), key=lambda column: (-totals[column], column))
        expected = 0.0
        for rank, column in enumerate(order[:10], 1):
            expected += gains[column] / math.log2(rank + 1)
        assert value == pytest.approx(expected)


def test_passages_that_are_not_reranked_stay_below():
    """a 1 0, b 0 1; c, which is not read, has no score that could lift it."""
    ranking = Ranking(['a', 'b', 'c'], [9.0, 8.0, 7.0])
    reranked = Ranking(['b', 'a'], [2.0, 1.0])
    aligned = align_reranked(ranking, reranked, n_read=2, grades={'b': 1})
    assert aligned.scores.tolist() == [[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]
    before, after = aligned.values([1.0, 0.0], [0.0, 1.0])
    assert (before, after) == (pytest.approx(1 / math.log2(3)), 1.0)


def test_the_ranking_that_is_right_gets_the_weight():
    """With 0 to .45 for the second ranking, b is above a; the first of these weights is taken."""
    right = Ranking(['b', 'a'], [2.0, 1.0])
    wrong = Ranking(['a', 'b'], [2.0, 1.0])
    assert learn_weights([align([right, wrong], {'b': 1})]) == (1.0, 0.0)


def test_a_weight_is_chosen_that_has_good_neighbours():
    """b is above a from .55 on; .65 is the first weight with two such neighbours on each side."""
    right = Ranking(['b', 'a'], [2.0, 1.0])
    wrong = Ranking(['a', 'b'], [2.0, 1.0])
    assert learn_weights([align([wrong, right], {'b': 1})]) == (0.35, 0.65)

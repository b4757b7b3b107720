"""The gain of an adaptation over the present search, by hand."""

import math

import numpy as np
import pytest

from pyserini_repbert.adapt.adaptation import Adaptation, UntunedSearches
from pyserini_repbert.evaluate.significance import TTest

AGREES = TTest(t=9.0, p=0.001)


def adaptation(chosen, agreement=AGREES, **untuned):
    """Of three texts, learned 0.5, 0.7, 0.9; the first search without learning is that of now."""
    return Adaptation(
        query_map=np.zeros((2, 2), np.float32),
        weights=(0.6, 0.4),
        rerank_weight=None,
        n_topics=5,
        texts=('a', 'b', 'c'),
        untuned=UntunedSearches(
            now=next(iter(untuned)),
            values={name: np.array(values) for name, values in untuned.items()},
            ways={},
            agreement=agreement,
        ),
        steps={'mapped': np.zeros(3), 'and fused': np.array([0.5, 0.7, 0.9])},
        chosen=np.array(chosen),
        fold_maps=(),
        fold_of_text=(),
    )


def test_the_gain_is_over_the_search_as_it_is_now():
    """Chosen 0.5, 0.7, 0.9 against 0.4, 0.5, 0.9: gains 0.1, 0.2, 0, of which the mean is 0.1 and
    the standard error 0.1 / sqrt(3). The dense ranking is worse, and does not count.
    """
    estimate = adaptation([0.5, 0.7, 0.9], fused=[0.4, 0.5, 0.9], dense=[0, 0, 0]).estimate()
    assert (estimate.now, estimate.winner, estimate.offered) == ('fused', 'and fused', 'and fused')
    assert (estimate.topics, estimate.texts) == (5, 3)
    assert estimate.before == pytest.approx(0.6)
    assert estimate.after == pytest.approx(0.7)
    assert estimate.gain == pytest.approx(0.1)
    assert estimate.standard_error == pytest.approx(0.1 / math.sqrt(3))
    # t = sqrt(3) with two degrees of freedom: p = 1 - t / sqrt(2 + t^2).
    assert estimate.p == pytest.approx(1 - math.sqrt(3) / math.sqrt(5))
    # Of two degrees of freedom, 97.5% of Student's t are below 4.3027.
    assert estimate.low == pytest.approx(0.1 - 4.3027 * 0.1 / math.sqrt(3), abs=1e-5)
    assert estimate.high == pytest.approx(0.1 + 4.3027 * 0.1 / math.sqrt(3), abs=1e-5)
    assert not estimate.is_convincing
    assert not estimate.keeps_now
    # Only draws of the third text alone gain nothing: one in 27. None loses.
    assert estimate.probability == pytest.approx(26 / 27, abs=0.01)
    assert estimate.expected_loss == 0
    assert estimate.is_worth_using


def test_a_likely_gain_is_worth_using_where_the_judgments_fit_their_questions():
    values = {'fused': [0.4, 0.5, 0.9], 'dense': [0, 0, 0]}
    below = TTest(t=-9.0, p=0.001)
    noise = TTest(t=1.0, p=0.3)
    for agreement in (below, noise):
        estimate = adaptation([0.5, 0.7, 0.9], agreement, **values).estimate()
        assert estimate.probability > 0.8
        assert not estimate.agrees
        assert not estimate.is_worth_using
    # Surely better is better, whatever the search finds now.
    sure = adaptation([0.5, 0.6, 1.0], below, **values).estimate()
    assert sure.is_convincing
    assert sure.is_worth_using


def test_a_loss_or_a_costly_gain_is_not_worth_using():
    """A loss of .02 and gains of .01 and 0: the mean is below 0, and no draw loses much."""
    worse = adaptation([0.41, 0.5, 0.88], now=[0.4, 0.5, 0.9]).estimate()
    assert worse.gain < 0
    assert worse.expected_loss < 0.01
    assert not worse.is_worth_using
    # One question loses all: with a probability of 8/27 it is not drawn.
    costly = adaptation([1.0, 1.0, 0.0], now=[0.0, 0.0, 0.9]).estimate()
    assert costly.gain > 0.3
    assert costly.expected_loss > 0.01
    assert not costly.is_worth_using


def test_a_winner_is_judged_by_the_choices_without_the_judged_text():
    """It has 0.8 on the average, and the choices of the folds gave 0.5."""
    estimate = adaptation([0.5, 0.5, 0.5], now=[0.4, 0.5, 0.6], best=[0.8, 0.9, 0.7]).estimate()
    assert (estimate.winner, estimate.offered) == ('best', 'best')
    assert estimate.after == pytest.approx(0.5)
    assert estimate.gain == pytest.approx(0.0)


def test_where_the_search_as_it_is_now_wins_what_was_learned_is_compared():
    estimate = adaptation([0.9, 0.9, 0.9], now=[0.9, 0.9, 0.9], dense=[0, 0, 0]).estimate()
    assert estimate.keeps_now
    assert (estimate.winner, estimate.offered) == ('now', 'and fused')
    assert estimate.gain == pytest.approx(-0.2)
    assert not estimate.is_convincing


def test_of_equal_ways_the_search_as_it_is_now_wins():
    assert adaptation([0.7] * 3, now=[0.7] * 3, other=[0.7] * 3).winner == 'now'

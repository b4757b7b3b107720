"""The choice of a way of searching, in folds."""

import numpy as np

from pyserini_repbert.adapt.choosing import LearnedValues, choose_held_out

# Two texts in each of two folds.
FOLDS = np.array([0, 1, 0, 1])


def choose(untuned, learned, without):
    values = LearnedValues(np.array(learned), [np.array(own) for own in without])
    untuned = {name: np.array(own) for name, own in untuned.items()}
    return choose_held_out(untuned, values, FOLDS).tolist()


def test_a_fold_has_the_way_that_is_best_on_the_other_fold():
    """`a` is best on texts 0 and 2, `b` on 1 and 3: each is chosen where it is worst."""
    untuned = {'a': [1.0, 0.0, 1.0, 0.1], 'b': [0.2, 1.0, 0.3, 1.0]}
    zeros = [0.0] * 4
    assert choose(untuned, zeros, [zeros, zeros]) == [0.2, 0.0, 0.3, 0.1]


def test_what_was_learned_is_compared_by_what_the_fold_held_out_did_not_teach():
    """Without fold 0 it is worse than `now` on fold 1, whatever its values are with fold 0."""
    untuned = {'now': [0.5] * 4}
    learned = [0.9, 0.8, 0.7, 0.6]
    without = [[0.0, 0.4, 0.0, 0.4], [0.6, 0.0, 0.6, 0.0]]
    assert choose(untuned, learned, without) == [0.5, 0.8, 0.5, 0.6]


def test_of_equal_ways_the_first_is_chosen():
    untuned = {'now': [0.5, 0.5, 0.5, 0.5], 'other': [0.4, 0.6, 0.6, 0.4]}
    half = [0.5] * 4
    assert choose(untuned, [0.9] * 4, [half, half]) == [0.5] * 4

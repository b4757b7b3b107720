import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data.runs import reciprocal_scores, strictly_decreasing, ties_restored


@given(
    st.lists(
        st.floats(-20, 20) | st.floats(-1e9, 1e9) | st.sampled_from([15.999999, 16.0, 30.25, 0.1, 700.0, -700.0]),
        max_size=60,
    )
)
@settings(max_examples=500)
def test_written_scores_strictly_decrease(scores):
    scores = sorted([*scores, *scores[:5]], reverse=True)
    result = [float(f'{score:.6f}') for score in strictly_decreasing(scores)]
    assert result == strictly_decreasing(scores)
    single = np.array(result, dtype=np.float32)
    assert (np.diff(single) < 0).all()
    assert all(new <= old + 1e-6 * max(1, abs(old)) for new, old in zip(result, scores, strict=True))


@given(st.lists(st.floats(-10, 10), max_size=30), st.floats(100, 1000))
def test_small_and_large_scores_change_as_little_as_needed(scores, large):
    """Against the plain definition: one value after the other, each just below the last where it has to be."""
    for values in (sorted(scores, reverse=True), sorted([large, *scores, *scores], reverse=True)):
        expected: list[float] = []
        for value in values:
            rounded = round(value, 6)
            if expected and np.float32(rounded) >= np.float32(expected[-1]):
                below = float(np.nextafter(np.float32(expected[-1]), np.float32('-inf')))
                rounded = round(min(expected[-1] - 1e-6, below), 6)
            expected.append(rounded)
        assert strictly_decreasing(values) == pytest.approx(expected, abs=1e-9)


def test_scores_that_already_decrease_stay():
    assert strictly_decreasing([3.25, 1.5, -0.0]) == [3.25, 1.5, 0.0]
    assert strictly_decreasing([]) == []


@given(st.lists(st.integers(-2000, 2000), max_size=20), st.sampled_from([0.01, 0.1, 10.0]))
def test_ties_are_restored_from_what_was_written(numbers, scale):
    scores = sorted((number * scale for number in [*numbers, *numbers[:9]]), reverse=True)
    restored = ties_restored(strictly_decreasing(scores))
    equal = [[after == before for before, after in itertools.pairwise(values)] for values in (scores, restored)]
    assert equal[0] == equal[1]
    assert restored == sorted(restored, reverse=True)


def test_scores_that_increase_are_lowered():
    assert strictly_decreasing([1.0, 2.0, 0.0]) == [1.0, 0.999999, 0.0]
    assert strictly_decreasing([20.0, 21.0])[1] < 20.0


def test_reciprocal_scores_beyond_a_thousand():
    scores = reciprocal_scores(1500)
    assert scores == tuple(1 / rank for rank in range(1, 1501))
    assert reciprocal_scores(0) == ()

"""Overlap and rank-biased overlap, against values worked out by hand by the paper's eq. 32."""

import pytest

from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap


@pytest.mark.parametrize(
    ('first', 'second', 'expected'),
    [
        ('abc', 'abc', 1.0),
        ('abc', 'xyz', 0.0),
        ('', '', 1.0),
        ('', 'a', 0.0),
        ('a', 'ab', 1.0),  # the shorter one, extrapolated, agrees at every depth
        # agreements 0, 1, 1: (0.1/0.9) (0.81 + 0.729) + 0.729
        ('abc', 'bac', 0.9),
        # agreements 0 and 1/2, nothing common at the shorter one's end: (0.1/0.9) 0.81/2 + 0.81/2
        ('a', 'ba', 0.45),
        # agreements 1, 1/2: (0.1/0.9) (0.9 + 0.81/2) + 0.81/2
        ('ab', 'ac', 0.55),
    ],
)
def test_rank_biased_overlap_by_hand(first, second, expected):
    assert rank_biased_overlap(first, second) == pytest.approx(expected, abs=1e-12)
    assert rank_biased_overlap(second, first) == pytest.approx(expected, abs=1e-12)


def test_overlap():
    assert overlap('abcd', 'bxay', 10) == 0.5
    assert overlap('abcd', 'bxay', 1) == 0.0
    assert overlap('abcd', 'ab', 10) == 0.5
    assert overlap('', '', 10) == 1.0

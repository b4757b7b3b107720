import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.fusion import interleave, provenance

rankings = st.lists(st.lists(st.sampled_from('abcdefghij'), unique=True), min_size=1, max_size=4)


def test_example_of_the_paper():
    assert interleave([['a', 'c', 'd'], ['b', 'a', 'c']]) == ['a', 'b', 'c', 'd']


@pytest.mark.parametrize(
    ('lists', 'k', 'expected'),
    [
        (['abc', 'def'], None, 'adbecf'),
        (['abc', 'def'], 4, 'adbe'),
        (['def', 'abc'], 4, 'daeb'),
        (['abc', 'def'], 0, ''),
        (['abc', 'def'], 99, 'adbecf'),
        (['ab', 'cdef'], None, 'acbdef'),
        (['abcd', 'e'], None, 'aebcd'),
        (['abc', 'abc'], None, 'abc'),
        (['abc', 'cba'], None, 'acb'),
        (['', 'ab'], None, 'ab'),
        (['ab', ''], None, 'ab'),
        (['', ''], None, ''),
        (['abc'], 2, 'ab'),
        ([], None, ''),
        (['ad', 'be', 'cf'], None, 'abcdef'),
        (['ab', 'bc', 'ca'], None, 'abc'),
        (['aab', 'c'], None, 'acb'),
    ],
)
def test_by_hand(lists, k, expected):
    assert interleave([list(own) for own in lists], k) == list(expected)


def test_a_thousand_are_kept_by_default():
    a, b = ([f'{name}{i}' for i in range(1000)] for name in 'ab')
    assert interleave([a, b]) == [
        docid for pair in zip(a[:500], b[:500], strict=True) for docid in pair
    ]
    assert len(interleave([a, b], k=None)) == 2000


@given(rankings)
def test_positions_are_ordered_by_highest_place(lists):
    """Each document's place is its least (rank, number of the ranking): the plain definition of
    eq. (6).
    """
    places = {}
    for number, own in enumerate(lists):
        for rank, docid in enumerate(own):
            places[docid] = min(places.get(docid, (99, 99)), (rank, number))
    assert interleave(lists, None) == sorted(places, key=places.__getitem__)


def test_provenance():
    found = provenance([['a', 'c', 'd'], ['b', 'a', 'c']], ['a', 'b', 'c', 'x'])
    assert found == [(1, 2), (None, 1), (2, 3), (None, None)]
    assert provenance([['a', 'b', 'a']], ['a', 'b']) == [(1,), (2,)]
    assert provenance([[], []], []) == []

import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.errors import InputError
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


def test_a_negative_number_of_documents_is_refused():
    with pytest.raises(InputError, match='cannot keep -1 documents: k has to be at least 0'):
        interleave([['a'], ['b']], -1)


def test_a_thousand_are_kept_by_default():
    a = [f'a{rank}' for rank in range(1000)]
    b = [f'b{rank}' for rank in range(1000)]
    fused = interleave([a, b])
    assert fused[0::2] == a[:500]
    assert fused[1::2] == b[:500]
    assert len(interleave([a, b], k=None)) == 2000


@given(rankings)
def test_documents_are_ordered_by_their_highest_rank(lists):
    """The plain definition of eq. (6): the least (rank, number of the ranking) counts."""
    positions = {}
    for number, docids in enumerate(lists):
        for rank, docid in enumerate(docids):
            positions[docid] = min(positions.get(docid, (99, 99)), (rank, number))
    assert interleave(lists, None) == sorted(positions, key=positions.__getitem__)


def test_provenance():
    ranks = provenance([['a', 'c', 'd'], ['b', 'a', 'c']], ['a', 'b', 'c', 'x'])
    assert ranks == [(1, 2), (None, 1), (2, 3), (None, None)]
    assert provenance([['a', 'b', 'a']], ['a', 'b']) == [(1,), (2,)]
    assert provenance([[], []], []) == []

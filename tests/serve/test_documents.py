"""Passages for clients: Pyserini's forms of stored documents, and marked words, by hand."""

import pytest

from pyserini_repbert.serve.answers import SHOWN_CHARACTERS, document, marked, shown_parts


def test_words_of_the_query_are_marked():
    assert marked('the CATS of a story', 'Stories of the cat, category') == [
        ('Stories', True),
        (' of the ', False),
        ('cat', True),
        (', category', False),
    ]
    assert marked('', 'text') == [('text', False)]
    assert marked('cat', '') == [('', False)]
    hostile = '<b>cat</b> &amp; "cat"'
    assert ''.join(part for part, _ in marked('cat b', hostile)) == hostile


def test_stored_documents_as_pyserinis_server_gives_them():
    assert document(None) is None
    assert document('{"id": "1", "contents": "text"}') == 'text'
    assert document('{"id": "1", "title": "t", "text": "long text"}', most=4) == {
        'title': 't',
        'text': 'long',
    }
    assert (
        document('{"id": "1", "contents": "text"}', parse=False)
        == '{"id": "1", "contents": "text"}'
    )
    assert document('no JSON', most=2) == 'no'
    assert document('[1, 2]') == [1, 2]
    assert document('{"id": "1", "n": 3, "more": {"x": 1}}') == {'n': '3', 'more': {'x': 1}}
    assert document('[' * 100_000) == '[' * 100_000


def test_a_long_passage_is_shown_as_far_as_it_is_read():
    parts = shown_parts('cat', 'cat ' * SHOWN_CHARACTERS)
    assert parts[0] == {'text': 'cat', 'match': True} and parts[-1] == {
        'text': ' …',
        'match': False,
    }
    assert sum(len(part['text']) for part in parts) <= SHOWN_CHARACTERS + 2


@pytest.mark.parametrize('stored', ['NaN', '[1e999]', '{"id": "1", "a": [-Infinity], "b": "c"}'])
def test_numbers_that_json_lacks_stay_as_they_are_stored(stored):
    assert document(stored) == stored

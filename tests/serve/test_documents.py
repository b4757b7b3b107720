"""Passages for clients: Pyserini's forms of stored documents, and marked words, by hand."""

import pytest

from pyserini_repbert.serve.documents import (
    SHOWN_CHARACTERS,
    TextPart,
    display_parts,
    document,
    mark_words,
)


def test_words_of_the_query_are_marked():
    assert mark_words('the CATS of a story', 'Stories of the cat, category') == [
        TextPart('Stories', match=True),
        TextPart(' of the ', match=False),
        TextPart('cat', match=True),
        TextPart(', category', match=False),
    ]


def test_words_side_by_side_have_the_space_between_them():
    assert mark_words('cat dog', 'cat dog') == [
        TextPart('cat', match=True),
        TextPart(' ', match=False),
        TextPart('dog', match=True),
    ]


def test_without_a_query_or_a_text_there_is_one_part():
    assert mark_words('', 'text') == [TextPart('text', match=False)]
    assert mark_words('cat', '') == [TextPart('', match=False)]


def test_the_parts_joined_are_the_text():
    hostile = '<b>cat</b> &amp; "cat"'
    assert ''.join(part.text for part in mark_words('cat b', hostile)) == hostile


def test_an_absent_document_is_none():
    assert document(None) is None


def test_of_one_field_beside_the_identifier_the_value_is_left():
    assert document('{"id": "1", "contents": "text"}') == 'text'


def test_of_several_fields_those_of_text_are_cut():
    stored = '{"id": "1", "title": "title", "text": "long text"}'
    assert document(stored, max_length=4) == {'title': 'title', 'text': 'long'}


def test_a_document_that_is_not_parsed_is_as_it_is_stored():
    stored = '{"id": "1", "contents": "text"}'
    assert document(stored, parse=False) == stored


def test_what_is_no_object_stays():
    assert document('no JSON', max_length=2) == 'no'
    assert document('[1, 2]') == [1, 2]
    assert document('[' * 100_000) == '[' * 100_000


def test_numbers_become_texts_and_objects_stay():
    assert document('{"id": "1", "n": 3, "more": {"x": 1}}') == {'n': '3', 'more': {'x': 1}}


@pytest.mark.parametrize('stored', ['NaN', '[1e999]', '{"id": "1", "a": [-Infinity], "b": "c"}'])
def test_numbers_that_json_lacks_stay_as_they_are_stored(stored):
    assert document(stored) == stored


def test_a_long_passage_is_shown_as_far_as_it_is_read():
    parts = display_parts('cat', 'cat ' * SHOWN_CHARACTERS)
    assert parts[0] == {'text': 'cat', 'match': True}
    assert parts[-1] == {'text': ' …', 'match': False}
    assert sum(len(part['text']) for part in parts) <= SHOWN_CHARACTERS + len(' …')

"""Passages for clients: Pyserini's forms of stored documents, by hand."""

import pytest

from pyserini_repbert.serve.document_forms import (
    SHOWN_CHARACTERS,
    display_parts,
    document,
)


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

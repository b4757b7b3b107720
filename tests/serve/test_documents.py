"""Passages for clients: Pyserini's forms of stored documents, and text mended for reading, by hand."""

from __future__ import annotations

import pytest

from pyserini_repbert.serve.documents import document, marked, mended

WRITTEN = [
    ("`` Time flies , '' he said .", '"Time flies," he said.'),
    ("The moon ( a satellite ) does n't shine ; it 's lit .", "The moon (a satellite) doesn't shine; it's lit."),
    ('the Anglo - Saxon king -LRB- 871 -RRB- , Alfred', 'the Anglo-Saxon king (871), Alfred'),
    ("the dogs ' owners", "the dogs' owners"),
    ('1939 -- 1945', '1939 – 1945'),
]
AS_THEY_ARE = [
    'Nothing to mend (really): "quoted", 5% of 10 - 3.',
    '',
    '東京 é 😀',
]


@pytest.mark.parametrize(('tokens', 'text'), WRITTEN)
def test_tokens_become_text(tokens, text):
    assert mended(tokens) == text
    assert mended(text) == text


@pytest.mark.parametrize('text', AS_THEY_ARE)
def test_written_text_stays(text):
    assert mended(text) == text


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
    assert document('{"id": "1", "title": "t", "text": "long text"}', most=4) == {'title': 't', 'text': 'long'}
    assert document('{"id": "1", "contents": "text"}', parse=False) == '{"id": "1", "contents": "text"}'
    assert document('no JSON', most=2) == 'no'
    assert document('[1, 2]') == [1, 2]
    assert document('{"id": "1", "n": 3, "more": {"x": 1}}') == {'n': '3', 'more': {'x': 1}}
    assert document('[' * 100_000) == '[' * 100_000

"""Filters find mail by the words of a person's name and address; words find what somebody wrote."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.files.mail_people import Person
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.store import STORE
from pyserini_repbert.collection.stored_values import typed_values

MAILS = {
    'roof.eml': (
        'From: Klaus Brandt <kb@roofs.example>\n'
        'To: Anna Weber <anna@weber.example>; Tom <tom@weber.example>\n'
        'Date: Mon, 5 Feb 2024 09:00:00 +0000\nSubject: Offer\n\nEleven tiles are cracked.\n'
    ),
    'slugs.eml': 'From: "Duarte, Ines" <ines@duarte.example>\nSubject: Plot\n\nSlugs again.\n',
    'desk.eml': 'From: Brandt\nSubject: Desk\n\nThe desk is yours.\n',
}
MEANINGS = {
    'from:brandt': ['desk.eml', 'roof.eml'],
    'from:Bran*': ['desk.eml', 'roof.eml'],
    'from:"klaus brandt"': ['roof.eml'],
    'from:kb@roofs.example': ['roof.eml'],
    'from:roofs.example': ['roof.eml'],
    'from:"Klaus Brandt <kb@roofs.example>"': ['roof.eml'],
    'from:"Ines Duarte"': ['slugs.eml'],
    'from:duarte': ['slugs.eml'],
    'from:laus*': [],
    'to:tom AND to:weber': ['roof.eml'],
    'NOT to:*': ['desk.eml', 'slugs.eml'],
}


@pytest.fixture
def synced(open_collection, tmp_path):
    folder = tmp_path / 'mails'
    folder.mkdir()
    for name, text in MAILS.items():
        (folder / name).write_text(text, encoding='utf-8')
    with open_collection() as collection:
        collection.sync(folder)
        yield collection


def matching(collection, text):
    generation = collection.generation
    mask = DocumentFilter(text=text).mask(generation)
    return sorted(generation.docids(np.flatnonzero(mask)))


@pytest.mark.parametrize(('text', 'expected'), MEANINGS.items(), ids=list(MEANINGS))
def test_mails_by_people(synced, text, expected):
    assert matching(synced, text) == expected


def test_people_are_counted_and_their_words_are_not(synced):
    counts = FieldCounter(synced.generation).counts()
    assert [(own.value, own.documents) for own in counts['from'].values] == [
        ('brandt', 1),
        ('duarte, ines <ines@duarte.example>', 1),
        ('klaus brandt <kb@roofs.example>', 1),
    ]
    assert synced.generation.field_types['from'] == {'text'}


def test_a_hit_shows_its_sender(synced):
    titles = {hit.docid: hit.title for hit in synced.search('tiles', 3)}
    assert titles['roof.eml'] == 'Klaus Brandt: Offer'
    assert ': intact, ' in check_collection(synced.folder)


def test_mails_of_earlier_readers_are_read_again(synced, tmp_path, monkeypatch):
    """Their fields are as they were, but no word of a name was found."""
    with closing(sqlite3.connect(synced.folder / STORE)) as connection:
        connection.execute("DELETE FROM field_values WHERE type = 'word'")
        connection.execute("UPDATE source_readers SET versions = 'readers 8'")
        connection.commit()
    assert matching(synced, 'from:klaus') == []
    monkeypatch.setattr(Person, 'shown_name', 'K. Brandt')
    changes = synced.sync(tmp_path / 'mails')
    assert changes.changed == 3
    assert matching(synced, 'from:klaus') == ['roof.eml']


@pytest.mark.parametrize(
    ('field', 'text', 'words'),
    [
        ('from', 'Ada', []),
        ('from', 'Ada King', ['ada', 'ada king', 'king']),
        ('author', 'Ada King', []),
        ('author', 'Ada <a@b.org>', ['a@b.org', 'ada', 'b.org']),
        ('author', 'a@b.org', ['b.org']),
        ('author', 'mail a@b.org now', []),
        ('from', 'x' * 101, []),
        ('from', '<>', []),
        ('from', 'Ada <nobody>', []),
    ],
)
def test_words_of_a_person(field, text, words):
    values = typed_values({field: text})
    assert [value for _, kind, value in values if kind == 'word'] == [
        word for word in words if word != text.casefold()
    ]

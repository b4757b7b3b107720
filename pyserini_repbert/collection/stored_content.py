"""Whether the rows of a collection's documents are still as they were written.

Texts, fields, the values that filters compare, and the inputs of passages are compared with their
digests, or with what the writer makes of them, document after document: the memory that this takes
does not grow with the collection.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.store import ALIVE, STORE, open_for_reading, sqlite_errors
from pyserini_repbert.collection.stored_values import (
    fields_fit,
    filter_values,
    input_digest,
    origin_fits,
    text_fits,
)
from pyserini_repbert.data.documents import Document

# What each table has of a document; the number of the document comes first.
_QUERIES = {
    'fields': (
        'SELECT docno, docid, digest, text_digest, fields '
        f'FROM fields LEFT JOIN documents USING (docno) WHERE {ALIVE} ORDER BY docno'
    ),
    'origins': f'SELECT docno, file, outline, digest FROM origins WHERE {ALIVE} ORDER BY docno',
    'texts': f'SELECT docno, title, text FROM texts WHERE {ALIVE} ORDER BY docno',
    'field_values': (
        f'SELECT docno, field, type, value FROM field_values WHERE {ALIVE} ORDER BY docno'
    ),
    'passages': (
        'SELECT docno, number, start, end, input '
        f'FROM passages WHERE {ALIVE} ORDER BY docno, number'
    ),
}
_Row = tuple[Any, ...]


def content_differences(generation: Generation) -> Iterator[str]:
    """The documents of a generation that differ from what was written, one line each."""
    path = generation.folder / STORE
    key = generation.settings.model_key()
    with contextlib.closing(open_for_reading(generation.folder)) as connection:
        # A text that is no longer UTF-8 is another text, not an error.
        connection.text_factory = lambda raw: raw.decode('utf-8', 'replace')
        with sqlite_errors(path):
            for document in _documents(connection, generation.number):
                yield from document.differences(key)


def _documents(connection: sqlite3.Connection, generation: int) -> Iterator[_StoredDocument]:
    """What the tables have of each document, in the order of their numbers."""
    streams = []
    for table, query in _QUERIES.items():
        stored = connection.execute(query, {'generation': generation})
        streams.append(_named(table, stored))
    # The numbers come in ascending order in each stream.
    merged = heapq.merge(*streams, key=itemgetter(0))
    for docno, rows in groupby(merged, key=itemgetter(0)):
        document = _StoredDocument(docno)
        for _, table, values in rows:
            document.rows[table].append(values)
        yield document


def _named(table: str, rows: Iterable[_Row]) -> Iterator[tuple[int, str, _Row]]:
    """(number of the document, table, the other values) of each row."""
    for docno, *values in rows:
        yield docno, table, tuple(values)


@dataclass(frozen=True)
class _StoredDocument:
    """The rows of a document, by table."""

    docno: int
    rows: dict[str, list[_Row]] = field(default_factory=lambda: {table: [] for table in _QUERIES})

    def differences(self, key: bytes) -> Iterator[str]:
        """What differs from what was written; `key` is the digest key of passages' inputs."""
        versions = self.rows['fields']
        if len(versions) != 1:
            others = [table for table, rows in self.rows.items() if rows]
            yield (
                f'document number {self.docno} has {len(versions)} versions, and rows in '
                f'{", ".join(others)}'
            )
            return
        docid, digest, text_digest, fields = versions[0]
        if docid is None:
            yield f'document number {self.docno} has no docid'
            return
        name = f"document '{docid}'"
        are_fields_intact = fields_fit(fields, digest)
        if not are_fields_intact:
            yield f'the fields of {name} are not those that were stored'
        for file, outline, digest in self.rows['origins']:
            if not origin_fits(file, outline, digest):
                yield f'the place of {name} in its source is not the one that was stored'
        texts = self.rows['texts']
        if len(texts) != 1:
            yield f'{name} has {len(texts)} texts'
            return
        title, text = texts[0]
        if not text_fits(title, text, text_digest):
            yield f'the title or the text of {name} is not the one that was stored'
            return
        if are_fields_intact:
            values = set(filter_values(Document(docid, text, title, json.loads(fields))))
            yield from _value_differences(name, values, self.rows['field_values'])
        yield from _passage_differences(name, _Text(title, text), self.rows['passages'], key)


def _value_differences(name: str, expected: set[_Row], rows: Sequence[_Row]) -> Iterator[str]:
    """How the values that filters compare differ from the document's fields."""
    found = set(rows)
    for what, values in (('lack', expected - found), ('have also', found - expected)):
        for field_name, kind, value in sorted(values, key=repr)[:1]:
            yield (
                f'the values of fields of {name} {what} {field_name}:{value!s:.60} ({kind}), '
                f'{len(values)} in all'
            )


@dataclass(frozen=True)
class _Text:
    """A document's title and text."""

    title: str
    text: str


def _passage_differences(
    name: str, stored: _Text, rows: Sequence[_Row], key: bytes
) -> Iterator[str]:
    """How the passages of a document differ from their digests.

    Parameters
    ----------
    name : of the document, for the lines
    stored : its title and text, which fit their digest
    rows : number, start, end and digest of each passage
    key : of the digests
    """
    numbers = [row[0] for row in rows]
    if numbers != list(range(len(rows))):
        yield f'{name} has the passages {", ".join(map(str, numbers[:10]))}'
        return
    if stored.title and not rows:
        yield f'{name} has no passages'
        return
    title = _InputTitle(stored.title, key)
    for number, start, end, digest in rows:
        if not (isinstance(start, int) and isinstance(end, int)):
            yield f'passage {number} of {name} has the range {start!r:.40} to {end!r:.40}'
        elif not 0 <= start <= end <= len(stored.text):
            yield f'passage {number} of {name} is outside of its text'
        elif not title.fits(stored.text[start:end], digest):
            yield f'passage {number} of {name} is not what was encoded'


class _InputTitle:
    """A document's title as it is put in front of its passages: a long one is shortened.

    Only the tokenizer knows where; here, the digest of an input tells.

    Parameters
    ----------
    title : the whole title
    key : of the digests of inputs
    """

    def __init__(self, title: str, key: bytes) -> None:
        self._title = title
        self._key = key
        self._shown = title
        self._is_looked_for = False

    def fits(self, passage: str, digest: bytes) -> bool:
        """Whether the input of a passage has a digest."""
        if self._digest(self._shown, passage) == digest:
            return True
        if self._is_looked_for:
            return False
        self._is_looked_for = True
        for length in range(len(self._title)):
            if self._digest(self._title[:length], passage) == digest:
                self._shown = self._title[:length]
                return True
        return False

    def _digest(self, title: str, passage: str) -> bytes:
        return input_digest(' '.join(filter(None, (title, passage))), self._key)

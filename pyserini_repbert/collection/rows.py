"""Versioned rows of a collection: rows of the next generation, which no reader sees yet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyserini_repbert.collection.passages import CutPassage
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.collection.store import FOREVER, VERSIONED
from pyserini_repbert.collection.stored_values import filter_values, origin_digest, rendered_fields
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.word_forms import docid_form
from pyserini_repbert.sqlite_files import transaction


class KnownDocument(NamedTuple):
    """What the collection has of a docid; for a deleted document, only its number."""

    docid: str
    docno: int
    source: int | None
    fields_digest: bytes | None
    text_digest: bytes | None
    origin_digest: bytes | None = None

    @property
    def is_live(self) -> bool:
        """Whether the document is in the collection."""
        return self.source is not None

    def has(self, source: int, of_fields: bytes, of_text: bytes) -> bool:
        """Whether the document has this source and these digests."""
        is_text = self.text_digest == of_text
        return is_text and self.fields_digest == of_fields and self.source == source


@dataclass(frozen=True)
class RowOfShard:
    """Where the vector of a passage is; `shard` is None for the shard that is written next."""

    shard: int | None
    row: int


@dataclass(frozen=True)
class PassageRow:
    """A passage of a document, with the digest of its input, and where its vector is."""

    docno: int
    number: int
    passage: CutPassage
    digest: bytes
    location: RowOfShard


def discard_staged(connection: sqlite3.Connection, generation: int) -> None:
    """Take back what a command staged for a generation that it did not publish."""
    staged = 'docno IN (SELECT docno FROM staged)'
    with transaction(connection):
        connection.execute(
            'DELETE FROM dead_rows WHERE since = ? AND (shard, row) IN '
            f'(SELECT shard, row FROM passages WHERE {staged} AND until = ?)',
            [generation, generation],
        )
        for table in VERSIONED:
            connection.execute(f'DELETE FROM {table} WHERE {staged} AND since = ?', [generation])
            connection.execute(
                f'UPDATE {table} SET until = {FOREVER} WHERE {staged} AND until = ?', [generation]
            )
        connection.execute('DELETE FROM shards WHERE since = ?', [generation])
        connection.execute(f'UPDATE shards SET until = {FOREVER} WHERE until = ?', [generation])
        connection.execute('DELETE FROM staged')


class StagedRows:
    """Reads live rows, and writes rows of the next generation, `generation`.

    Calls that write belong into a transaction of the caller. New documents are numbered from
    `first_new` on.
    """

    def __init__(self, connection: sqlite3.Connection, generation: int) -> None:
        self.connection = connection
        self.generation = generation
        self.first_new = self._first_new()

    def _first_new(self) -> int:
        """The first number that no document has had."""
        row = self.connection.execute('SELECT COALESCE(MAX(docno), -1) FROM documents').fetchone()
        return int(row[0]) + 1

    def find(self, docids: Sequence[str]) -> dict[str, KnownDocument]:
        """What the collection has of these docids, without those that it never had."""
        rows = self.connection.execute(
            'SELECT docid, documents.docno, source, fields.digest, text_digest, origins.digest '
            'FROM documents '
            f'LEFT JOIN fields ON fields.docno = documents.docno AND fields.until = {FOREVER} '
            f'LEFT JOIN origins ON origins.docno = documents.docno AND origins.until = {FOREVER} '
            'WHERE docid IN (SELECT value FROM json_each(?))',
            [json.dumps(list(docids))],
        )
        return {known.docid: known for known in map(KnownDocument._make, rows)}

    def numbers_of_files(self, files: Iterable[str]) -> set[int]:
        """The numbers of documents that files have had; `files` are their paths in the corpus."""
        numbers: set[int] = set()
        for file in files:
            rows = self.connection.execute('SELECT docno FROM origins WHERE file = ?', [file])
            numbers.update(docno for (docno,) in rows)
        return numbers

    def docids(self, docnos: Sequence[int]) -> list[str]:
        """The docids of documents, in the order of their numbers."""
        rows = self.connection.execute(
            'SELECT docid FROM documents WHERE docno IN (SELECT value FROM json_each(?)) '
            'ORDER BY docno',
            [json.dumps(list(docnos))],
        )
        return [docid for (docid,) in rows]

    def locations(self, docnos: Sequence[int]) -> dict[tuple[int, int, bytes], RowOfShard]:
        """Where the live passages of documents are, by docno, number, and digest of the input."""
        rows = self.connection.execute(
            f'SELECT docno, number, input, shard, row FROM passages WHERE until = {FOREVER} '
            'AND docno IN (SELECT value FROM json_each(?))',
            [json.dumps(docnos)],
        )
        return {
            (docno, number, digest): RowOfShard(shard, row)
            for docno, number, digest, shard, row in rows
        }

    def shard_name(self, shard: int) -> str:
        """The name of a shard, by its number. Raises sqlite3.DataError for none of this number."""
        rows = self.connection.execute('SELECT name FROM shards WHERE shard = ?', [shard])
        row = rows.fetchone()
        if row is None:
            raise sqlite3.DataError(f'a passage is in shard {shard}, which does not exist')
        return str(row[0])

    def write_docid(self, docno: int, docid: str) -> None:
        """Give a new document its number."""
        self._insert('documents', docno, docid)
        form = docid_form(docid)
        if form != docid:
            self._insert('docid_forms', form, docno)

    def write_version(
        self, docno: int, document: Document, source: int, of_fields: bytes, of_text: bytes
    ) -> None:
        """Write a document's source, digests and fields.

        Parameters
        ----------
        docno : the document's number
        document : has the fields
        source : the number of its source
        of_fields, of_text : the digests of its fields and of its text
        """
        self.end('fields', docno)
        fields = rendered_fields(document.fields)
        version = (docno, self.generation, FOREVER, source, of_fields, of_text, fields)
        self._insert('fields', *version)

    def write_field_values(self, docno: int, document: Document) -> None:
        """Write the values by which filters find a document, unless they are stored already."""
        values = filter_values(document)
        stored = self.connection.execute(
            f'SELECT field, type, value FROM field_values WHERE docno = ? AND until = {FOREVER}',
            [docno],
        )
        if set(stored) == set(values):
            return
        self.end('field_values', docno)
        for name, kind, value in values:
            self._insert('field_values', name, kind, value, docno, self.generation, FOREVER)

    def write_origin(self, docno: int, document: Document) -> None:
        """Write a document's location in its source."""
        self.end('origins', docno)
        origin = document.origin
        if origin is not None:
            version = (docno, self.generation, FOREVER, origin.file, origin.rendered())
            self._insert('origins', *version, origin_digest(origin))

    def write_text(self, docno: int, document: Document) -> None:
        """Write a document's title and text; the passages before are dead."""
        self.end_text(docno)
        version = (docno, self.generation, FOREVER, document.title, document.text)
        self._insert('texts', *version)

    def write_passage(self, row: PassageRow, shard: int) -> None:
        """Write a passage, whose vector is in a shard."""
        passage = row.passage
        version = (row.docno, row.number, self.generation, FOREVER, passage.start, passage.end)
        self._insert('passages', *version, row.digest, shard, row.location.row)
        if row.location.shard is not None:
            # a row that stays was counted as dead when the version before ended
            self.connection.execute(
                'DELETE FROM dead_rows WHERE shard = ? AND row = ?', [shard, row.location.row]
            )

    def write_shard(self, shard: PassageShard) -> int:
        """Note a shard of the next generation; returns its number."""
        cursor = self.connection.execute(
            'INSERT INTO shards (name, rows, since, until) VALUES (?, ?, ?, ?)',
            [shard.name, len(shard), self.generation, FOREVER],
        )
        return int(cursor.lastrowid or 0)

    def end(self, table: str, docno: int) -> None:
        """End a document's live rows: the next generation does not see them."""
        if docno < self.first_new:
            self.connection.execute(
                f'UPDATE {table} SET until = ? WHERE docno = ? AND until = {FOREVER}',
                [self.generation, docno],
            )
        self.connection.execute('INSERT OR IGNORE INTO staged VALUES (?, 0)', [docno])

    def end_text(self, docno: int) -> None:
        """End the text of a document and its passages; Lucene will have another text, or none."""
        self.end('texts', docno)
        self.end_passages(docno)
        self.connection.execute('UPDATE staged SET is_text = 1 WHERE docno = ?', [docno])

    def end_passages(self, docno: int) -> None:
        """End the passages of a document; their rows in shards are dead from now on."""
        if docno >= self.first_new:
            return
        self.connection.execute(
            'INSERT OR IGNORE INTO dead_rows SELECT shard, row, ? FROM passages '
            f'WHERE docno = ? AND until = {FOREVER}',
            [self.generation, docno],
        )
        self.end('passages', docno)

    def _insert(self, table: str, *values: object) -> None:
        marks = ','.join('?' * len(values))
        self.connection.execute(f'INSERT INTO {table} VALUES ({marks})', values)

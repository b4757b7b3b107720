"""What a writer does to documents: rows of the next generation, which no reader sees yet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from pyserini_repbert.collection.documents import (
    fields_digest,
    rendered_fields,
    text_digest,
    typed_values,
)
from pyserini_repbert.collection.encoding import PassageEncoder
from pyserini_repbert.collection.passages import Passage
from pyserini_repbert.collection.shards import (
    INPUT_BYTES,
    SHARDS,
    Shard,
    ShardRows,
    write_shard,
)
from pyserini_repbert.collection.store import FOREVER, VERSIONED, transaction
from pyserini_repbert.collection.vectors import VectorSource
from pyserini_repbert.data.documents import Document

# What is held in memory until it is written. A kill loses at most so much encoding.
_PASSAGES_AT_ONCE = 1024
_DOCUMENTS_AT_ONCE = 2048
_CHARACTERS_AT_ONCE = 8_000_000


@dataclass(frozen=True)
class KnownDocument:
    """What the collection has of a docid; of one that is deleted, the number alone."""

    docno: int
    source: int | None
    fields_digest: bytes | None
    text_digest: bytes | None

    @property
    def is_live(self) -> bool:
        """Whether the document is in the collection."""
        return self.source is not None

    def has(self, source: int, of_fields: bytes, of_text: bytes) -> bool:
        """Whether the document has this source and these digests."""
        is_text = self.text_digest == of_text
        return is_text and self.fields_digest == of_fields and self.source == source


class Change(StrEnum):
    """What writing a document does to the collection."""

    ADDED = 'added'
    CHANGED = 'changed'
    UNCHANGED = 'unchanged'


@dataclass(frozen=True)
class _Pending:
    """A document to be written; `passages` are None where those that are there stay."""

    document: Document
    source: int
    known: KnownDocument | None
    fields_digest: bytes
    text_digest: bytes
    passages: list[Passage] | None

    @property
    def is_text_new(self) -> bool:
        """Whether title or text differ from those of the collection."""
        return self.known is None or self.known.text_digest != self.text_digest

    @property
    def are_fields_new(self) -> bool:
        """Whether fields differ from those of the collection."""
        return self.known is None or self.known.fields_digest != self.fields_digest

    @property
    def is_new_version(self) -> bool:
        """Whether anything differs that the collection stores."""
        is_moved = self.known is None or self.known.source != self.source
        return is_moved or self.is_text_new or self.are_fields_new


@dataclass(frozen=True)
class _PassageRow:
    """A row of the table of passages; `shard` is None for the shard to be written."""

    docno: int
    number: int
    passage: Passage
    input: bytes
    shard: int | None
    row: int


@dataclass
class _Rows:
    """Rows of passages, in the order in which a shard will have them."""

    documents: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)

    def add(self, docno: int, number: int, digest: bytes) -> int:
        """Add a row; returns its number."""
        self.documents.append(docno)
        self.numbers.append(number)
        self.inputs.append(digest)
        return len(self.documents) - 1


def discard_staged(connection: sqlite3.Connection, generation: int) -> None:
    """Take back what a command staged for a generation that it did not publish."""
    staged = 'docno IN (SELECT docno FROM staged)'
    with transaction(connection):
        for table in VERSIONED:
            connection.execute(f'DELETE FROM {table} WHERE {staged} AND since = ?', [generation])
            connection.execute(
                f'UPDATE {table} SET until = {FOREVER} WHERE {staged} AND until = ?', [generation]
            )
        connection.execute('DELETE FROM dead_rows WHERE since = ?', [generation])
        connection.execute('DELETE FROM shards WHERE since = ?', [generation])
        connection.execute(f'UPDATE shards SET until = {FOREVER} WHERE until = ?', [generation])
        connection.execute('DELETE FROM staged')


class Staging:
    """Writes documents under the number of the next generation.

    Parameters
    ----------
    folder : the collection's
    connection : of its writer
    generation : the number of the next generation
    encoder : cuts and encodes
    dimension : of the vectors
    """

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        generation: int,
        encoder: PassageEncoder,
        dimension: int,
    ) -> None:
        self.folder = folder
        self.connection = connection
        self.generation = generation
        self.encoder = encoder
        self._dimension = dimension
        self.vectors = VectorSource(folder, connection, encoder, dimension)
        self._pending: list[_Pending] = []
        self._n_passages = 0
        self._n_characters = 0

    def source_number(self, name: str) -> int:
        """The number of a source, which is made where it is new."""
        self.connection.execute('INSERT OR IGNORE INTO sources (name) VALUES (?)', [name])
        row = self.connection.execute('SELECT source FROM sources WHERE name = ?', [name])
        return int(row.fetchone()[0])

    def find(self, docids: Sequence[str]) -> dict[str, KnownDocument]:
        """What the collection has of these docids, without those that it never had."""
        rows = self.connection.execute(
            'SELECT docid, documents.docno, source, digest, text_digest FROM documents '
            f'LEFT JOIN fields ON fields.docno = documents.docno AND until = {FOREVER} '
            'WHERE docid IN (SELECT value FROM json_each(?))',
            [json.dumps(list(docids))],
        )
        found = {}
        for docid, docno, source, of_fields, of_text in rows:
            found[docid] = KnownDocument(docno, source, of_fields, of_text)
        return found

    def put(
        self,
        documents: Sequence[Document],
        source: int,
        on_known: Callable[[int], object] = int,
    ) -> list[Change]:
        """Add documents, or change them to what is given; what changes is written in time.

        Returns what happens to each. `on_known` is called with the number of each document that
        the collection has had before.
        """
        known_documents = self.find([document.docid for document in documents])
        changes = []
        changed = []
        for document in documents:
            known = known_documents.get(document.docid)
            of_fields = fields_digest(document)
            of_text = text_digest(document)
            if known is not None:
                on_known(known.docno)
                if known.has(source, of_fields, of_text):
                    changes.append(Change.UNCHANGED)
                    continue
            is_new = known is None or not known.is_live
            changes.append(Change.ADDED if is_new else Change.CHANGED)
            changed.append(_Pending(document, source, known, of_fields, of_text, None))
        self._cut([pending for pending in changed if pending.is_text_new])
        self._append([pending for pending in changed if not pending.is_text_new])
        return changes

    def remove(self, docnos: Iterable[int]) -> None:
        """Take live documents out of the collection."""
        self.flush()
        with transaction(self.connection):
            for docno in docnos:
                self._end('fields', docno)
                self._end('field_values', docno)
                self._end_text(docno)

    def cut_again(self) -> None:
        """Cut and encode all documents whose passages were made with other settings."""
        self.flush()
        last = -1
        while True:
            rows = self.connection.execute(
                'SELECT docno, docid, title, text, source, digest, text_digest FROM texts '
                'JOIN documents USING (docno) JOIN fields USING (docno) '
                f'WHERE docno > ? AND texts.until = {FOREVER} AND fields.until = {FOREVER} '
                'AND texts.since < ? ORDER BY docno LIMIT 100',
                [last, self.generation],
            ).fetchall()
            if not rows:
                break
            documents = []
            for docno, docid, title, text, source, of_fields, of_text in rows:
                known = KnownDocument(docno, source, of_fields, of_text)
                document = Document(docid, text, title)
                documents.append(_Pending(document, source, known, of_fields, of_text, None))
                last = docno
            self._cut(documents)
        self.flush()

    def _cut(self, documents: Sequence[_Pending]) -> None:
        """Cut documents into passages, and let them be written."""
        titles = [pending.document.title for pending in documents]
        texts = [pending.document.text for pending in documents]
        if not any(titles) and not any(texts):
            # documents without text need no encoder
            cut: list[list[Passage]] = [[] for _ in documents]
        else:
            cut = self.encoder.cutter.cut(titles, texts)
        self._append(
            [
                replace(pending, passages=passages)
                for pending, passages in zip(documents, cut, strict=True)
            ]
        )

    def _append(self, documents: Iterable[_Pending]) -> None:
        for pending in documents:
            self._pending.append(pending)
            self._n_characters += len(pending.document.text)
            self._n_passages += len(pending.passages or ())
            is_full = (
                self._n_passages >= _PASSAGES_AT_ONCE
                or self._n_characters >= _CHARACTERS_AT_ONCE
                or len(self._pending) >= _DOCUMENTS_AT_ONCE
            )
            if is_full:
                self.flush()

    def flush(self) -> None:
        """Encode and write what was given so far: the shard first, then its rows."""
        if not self._pending:
            return
        pending = self._pending
        self._pending = []
        self._n_passages = 0
        self._n_characters = 0
        docnos = self._number_documents(pending)
        rows = _Rows()
        texts: dict[bytes, str] = {}
        passage_rows = self._passage_rows(pending, docnos, rows, texts)
        shard = None
        if rows.documents:
            shard = self._write_shard(rows, texts)
        with transaction(self.connection):
            self._write_documents(pending, docnos)
            self._write_passages(pending, docnos, passage_rows, shard)

    def _number_documents(self, pending: Sequence[_Pending]) -> list[int]:
        """The number of each document; a docid has the same number for ever."""
        last = self.connection.execute('SELECT MAX(docno) FROM documents').fetchone()[0]
        next_number = 0 if last is None else last + 1
        docnos = []
        for document in pending:
            if document.known is None:
                docnos.append(next_number)
                next_number += 1
            else:
                docnos.append(document.known.docno)
        return docnos

    def _passage_rows(
        self,
        pending: Sequence[_Pending],
        docnos: Sequence[int],
        rows: _Rows,
        texts: dict[bytes, str],
    ) -> list[_PassageRow]:
        """The rows of the new passages; `rows` and `texts` get what no row of theirs has yet."""
        cut = [docno for docno, item in zip(docnos, pending, strict=True) if item.passages]
        stored = self._stored_passages(cut)
        passage_rows = []
        for docno, item in zip(docnos, pending, strict=True):
            for number, passage in enumerate(item.passages or ()):
                digest = self.encoder.input_digest(passage.input)
                location = stored.get((docno, number, digest))
                if location is None:
                    texts[digest] = passage.input
                    location = (None, rows.add(docno, number, digest))
                passage_rows.append(_PassageRow(docno, number, passage, digest, *location))
        return passage_rows

    def _stored_passages(
        self, docnos: Sequence[int]
    ) -> dict[tuple[int, int, bytes], tuple[int | None, int]]:
        """(shard, row) of the live passages of documents, by docno, number and input."""
        rows = self.connection.execute(
            f'SELECT docno, number, input, shard, row FROM passages WHERE until = {FOREVER} '
            'AND docno IN (SELECT value FROM json_each(?))',
            [json.dumps(docnos)],
        )
        locations = {}
        for docno, number, digest, shard, row in rows:
            locations[docno, number, digest] = (shard, row)
        return locations

    def _write_shard(self, rows: _Rows, texts: dict[bytes, str]) -> Shard:
        vectors_by_input = self.vectors.vectors_of(texts)
        vectors = np.empty((len(rows.inputs), self._dimension), np.float32)
        for row, digest in enumerate(rows.inputs):
            vectors[row] = vectors_by_input[digest]
        inputs = np.frombuffer(b''.join(rows.inputs), np.uint8).reshape(-1, INPUT_BYTES)
        content = ShardRows(
            vectors=vectors,
            documents=np.array(rows.documents, np.int32),
            numbers=np.array(rows.numbers, np.int32),
            inputs=inputs,
        )
        return write_shard(self.folder / SHARDS, content, self.generation)

    def _write_documents(self, pending: Sequence[_Pending], docnos: Sequence[int]) -> None:
        """Write documents, fields and texts."""
        for docno, item in zip(docnos, pending, strict=True):
            document = item.document
            if item.known is None:
                self._insert('documents', (docno, document.docid))
            if item.is_new_version:
                fields = rendered_fields(document.fields)
                self._end('fields', docno)
                self._insert_version(
                    'fields', docno, item.source, item.fields_digest, item.text_digest, fields
                )
            if item.are_fields_new:
                self._end('field_values', docno)
                for name, kind, value in typed_values(document.fields):
                    version = (name, kind, value, docno, self.generation, FOREVER)
                    self._insert('field_values', version)
            if item.is_text_new:
                self._end_text(docno)
                self._insert_version('texts', docno, document.title, document.text)
            elif item.passages is not None:
                self._end_passages(docno)

    def _write_passages(
        self,
        pending: Sequence[_Pending],
        docnos: Sequence[int],
        passage_rows: Sequence[_PassageRow],
        shard: Shard | None,
    ) -> None:
        new_shard = -1 if shard is None else self.add_shard(shard)
        for row in passage_rows:
            number = new_shard if row.shard is None else row.shard
            version = (self.generation, FOREVER, row.passage.start, row.passage.end, row.input)
            self._insert('passages', (row.docno, row.number, *version, number, row.row))
            # a row that stays was counted as dead when the version before ended
            self.connection.execute(
                'DELETE FROM dead_rows WHERE shard = ? AND row = ?', [number, row.row]
            )

    def add_shard(self, shard: Shard) -> int:
        """Note a shard of the next generation; returns its number."""
        cursor = self.connection.execute(
            'INSERT INTO shards (name, rows, since, until) VALUES (?, ?, ?, ?)',
            [shard.name, len(shard), self.generation, FOREVER],
        )
        return int(cursor.lastrowid or 0)

    def _insert(self, table: str, values: Sequence[object]) -> None:
        marks = ','.join('?' * len(values))
        self.connection.execute(f'INSERT INTO {table} VALUES ({marks})', values)

    def _insert_version(self, table: str, docno: int, *values: object) -> None:
        """Write a document's row of the next generation."""
        self._insert(table, (docno, self.generation, FOREVER, *values))

    def _end(self, table: str, docno: int) -> None:
        """Let a document's live rows end with the generation before the next."""
        self.connection.execute(
            f'UPDATE {table} SET until = ? WHERE docno = ? AND until = {FOREVER}',
            [self.generation, docno],
        )
        self.connection.execute('INSERT OR IGNORE INTO staged VALUES (?, 0)', [docno])

    def _end_text(self, docno: int) -> None:
        self._end('texts', docno)
        self._end_passages(docno)
        self.connection.execute('UPDATE staged SET is_text = 1 WHERE docno = ?', [docno])

    def _end_passages(self, docno: int) -> None:
        """End the passages of a document; their rows in shards are dead from now on."""
        self.connection.execute(
            'INSERT OR IGNORE INTO dead_rows SELECT shard, row, ? FROM passages '
            f'WHERE docno = ? AND until = {FOREVER}',
            [self.generation, docno],
        )
        self._end('passages', docno)

"""How a writer cuts, encodes and stages documents for the next generation.

Documents are collected until there is enough to encode. Then a shard is written first, and the rows
that name it afterwards. A kill in between leaves a shard, whose vectors the next writer finds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pyserini_repbert.collection.encoding import PassageEncoder
from pyserini_repbert.collection.passages import CutPassage
from pyserini_repbert.collection.rows import KnownDocument, PassageRow, RowOfShard, StagedRows
from pyserini_repbert.collection.shards import (
    INPUT_BYTES,
    SHARDS,
    PassageShard,
    ShardRows,
    write_shard,
)
from pyserini_repbert.collection.spare_shards import Encoded, SpareShards
from pyserini_repbert.collection.store import FOREVER, damage
from pyserini_repbert.collection.stored_values import (
    fields_digest,
    origin_digest,
    origin_fits,
    text_digest,
    text_fits,
)
from pyserini_repbert.collection.vectors import VectorSource
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_types import is_table, is_workbook
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.sqlite_files import transaction

# The most that is held in memory until it is written. Spare shards keep the encoded part of it
# meanwhile.
_PASSAGES_AT_ONCE = 1024
_DOCUMENTS_AT_ONCE = 2048
_CHARACTERS_AT_ONCE = 8_000_000
_CUT_AT_ONCE = 100  # documents that are read to be cut again


@dataclass
class WrittenCounts:
    """How many documents were new to the collection, changed and unchanged."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    added_rows: int = 0  # of the added ones, those that are rows of tables

    @property
    def total(self) -> int:
        """How many documents there were."""
        return self.added + self.changed + self.unchanged


@dataclass(frozen=True)
class _Pending:
    """A document to be written; `passages` are None if those that are there stay."""

    docno: int
    document: Document
    source: int
    known: KnownDocument | None
    fields_digest: bytes
    text_digest: bytes
    origin_digest: bytes | None = None
    passages: list[CutPassage] | None = None

    @property
    def is_text_new(self) -> bool:
        """Whether title or text differ from the stored ones."""
        return self.known is None or self.known.text_digest != self.text_digest

    @property
    def are_fields_new(self) -> bool:
        """Whether fields differ from the stored ones."""
        return self.known is None or self.known.fields_digest != self.fields_digest

    @property
    def is_origin_new(self) -> bool:
        """Whether the document's location in its source has changed."""
        before = None if self.known is None else self.known.origin_digest
        return before != self.origin_digest

    @property
    def is_new_version(self) -> bool:
        """Whether anything differs that the collection stores."""
        is_moved = self.known is None or self.known.source != self.source
        return is_moved or self.is_text_new or self.are_fields_new


@dataclass
class NewRows:
    """Rows of a shard to be written, and the inputs from which their vectors are made."""

    documents: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    inputs: dict[bytes, str] = field(default_factory=dict)

    def add(self, docno: int, number: int, digest: bytes, text: str) -> RowOfShard:
        """Add a row for passage `number` of document `docno`; the encoder reads `text`."""
        self.documents.append(docno)
        self.numbers.append(number)
        self.digests.append(digest)
        self.inputs[digest] = text
        return RowOfShard(None, len(self.documents) - 1)

    def __len__(self) -> int:
        return len(self.documents)


def _heading_starts(document: Document) -> list[int]:
    """The characters of a document's text at which headings begin."""
    headings = () if document.origin is None else document.origin.headings
    return [heading.start for heading in headings]


def _is_row(document: Document) -> bool:
    """Whether a document is a row of a table."""
    origin = document.origin
    if origin is None:
        return False
    return is_table(origin.file) or (is_workbook(origin.file) and origin.row > 0)


class Staging:
    """Writes documents under the number of the next generation.

    Parameters
    ----------
    folder : the collection's
    connection : of its writer
    generation : the number of the next generation
    encoder : cuts and encodes
    dimension : of the vectors
    dtype : the type in which they are stored
    others : folders of shards beside the collection's, in which vectors may be
    """

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        generation: int,
        encoder: PassageEncoder,
        dimension: int,
        dtype: str,
        others: Sequence[Path] = (),
    ) -> None:
        self.folder = folder
        self.connection = connection
        self.generation = generation
        self.rows = StagedRows(connection, generation)
        self.encoder = encoder
        self.dtype = dtype
        self._spare = SpareShards(folder, generation, dtype, encoder.further_models)
        self.vectors = VectorSource(folder, connection, encoder, dimension, self._spare, others)
        self._dimension = dimension
        self._are_complete: dict[int, bool] = {}
        self._next_docno = self.rows.first_new
        self._pending: list[_Pending] = []
        self._n_passages = 0
        self._n_characters = 0

    def put(
        self,
        documents: Sequence[Document],
        source: int,
        counts: WrittenCounts,
        on_known: Callable[[Sequence[KnownDocument]], object] = len,
    ) -> None:
        """Add or replace documents; changes are collected, and written when there are enough.

        Parameters
        ----------
        documents : those to put
        source : the number of their source
        counts : gets how many are added, changed and unchanged
        on_known : called first with those that the collection has had before
        """
        known_documents = self.rows.find([document.docid for document in documents])
        on_known(list(known_documents.values()))
        changed = []
        for document in documents:
            known = known_documents.get(document.docid)
            of_fields = fields_digest(document)
            of_text = text_digest(document)
            if known is None:
                docno = self._next_docno
                self._next_docno += 1
            else:
                docno = known.docno
            pending = _Pending(
                docno,
                document,
                source=source,
                known=known,
                fields_digest=of_fields,
                text_digest=of_text,
                origin_digest=origin_digest(document.origin),
            )
            if known is not None and known.has(source, of_fields, of_text):
                counts.unchanged += 1
                if not pending.is_origin_new:
                    continue
            elif known is not None and known.is_live:
                counts.changed += 1
            else:
                counts.added += 1
                counts.added_rows += _is_row(document)
            changed.append(pending)
        self._cut([pending for pending in changed if pending.is_text_new])
        self._append([pending for pending in changed if not pending.is_text_new])

    def remove(self, docnos: Iterable[int]) -> None:
        """Take live documents out of the collection."""
        self.flush()
        with transaction(self.connection):
            for docno in docnos:
                self.rows.end('fields', docno)
                self.rows.end('field_values', docno)
                self.rows.end('origins', docno)
                self.rows.end_text(docno)

    def cut_again(self) -> None:
        """Cut and encode all documents whose passages were made with other settings."""
        self.flush()
        last = -1
        while documents := self._read_stored(last):
            self._cut(documents)
            last = documents[-1].docno
        self.flush()

    def _read_stored(self, after: int) -> list[_Pending]:
        """The next documents after a number whose text the next generation keeps."""
        rows = self.connection.execute(
            'SELECT texts.docno, docid, title, text, source, fields.digest, text_digest, '
            'origins.digest, file, outline FROM texts '
            f'JOIN documents USING (docno) JOIN fields USING (docno) LEFT JOIN origins '
            f'ON origins.docno = texts.docno AND origins.until = {FOREVER} '
            f'WHERE texts.docno > ? AND texts.until = {FOREVER} AND fields.until = {FOREVER} '
            'AND texts.since < ? ORDER BY texts.docno LIMIT ?',
            [after, self.generation, _CUT_AT_ONCE],
        )
        documents = []
        for docno, docid, title, text, source, of_fields, of_text, of_origin, file, outline in rows:
            if not text_fits(title, text, of_text):
                raise damage(
                    self.folder,
                    f"the title or the text of document '{docid}' is not the one that was stored",
                )
            if of_origin is not None and not origin_fits(file, outline, of_origin):
                raise damage(
                    self.folder,
                    f"the place of document '{docid}' in its source is not the one that was stored",
                )
            known = KnownDocument(docid, docno, source, of_fields, of_text, of_origin)
            origin = None if of_origin is None else Origin.parsed(file, outline)
            document = Document(docid, text, title, origin=origin)
            documents.append(
                _Pending(
                    docno,
                    document,
                    source=source,
                    known=known,
                    fields_digest=of_fields,
                    text_digest=of_text,
                    origin_digest=of_origin,
                )
            )
        return documents

    def cut_stored(self) -> Iterator[tuple[int, list[CutPassage]]]:
        """The number of each document, in order, and its passages by the settings."""
        last = -1
        while documents := self._read_stored(last):
            for pending, passages in zip(documents, self._passages_of(documents), strict=True):
                yield pending.docno, passages
            last = documents[-1].docno

    def _cut(self, documents: Sequence[_Pending]) -> None:
        """Cut documents into passages, and collect them for writing."""
        for pending, cut in zip(documents, self._passages_of(documents), strict=True):
            if cut:
                self.encoder.words.add(pending.document)
            self._append([replace(pending, passages=cut)])

    def _passages_of(self, documents: Sequence[_Pending]) -> list[list[CutPassage]]:
        """The passages of each document; documents without text need no encoder."""
        titles = [pending.document.title for pending in documents]
        texts = [pending.document.text for pending in documents]
        if not any(titles) and not any(texts):
            return [[] for _ in documents]
        headings = [_heading_starts(pending.document) for pending in documents]
        return self.encoder.cutter.cut(titles, texts, headings)

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
        """Encode and write the documents given so far: first the shard, then its rows."""
        if not self._pending:
            return
        pending = self._pending
        self._pending = []
        self._n_passages = 0
        self._n_characters = 0
        new_rows = NewRows()
        passages = self._locate_passages(pending, new_rows)
        shard = None
        if new_rows.documents:
            shard = self._write_shard(new_rows, self.folder / SHARDS)
        with transaction(self.connection):
            for item in pending:
                self._write_document(item)
            number = -1
            if shard is not None:
                number = self.rows.write_shard(shard)
            for row in passages:
                known_shard = row.location.shard
                self.rows.write_passage(row, number if known_shard is None else known_shard)
        if shard is not None:
            self._spare.remove(but=shard.name)

    def _locate_passages(
        self, documents: Sequence[_Pending], new_rows: NewRows
    ) -> list[PassageRow]:
        """The passages of documents, in the rows that have them; others are added to `new_rows`."""
        cut = [item for item in documents if item.passages]
        known = self.rows.locations([item.docno for item in cut])
        located = []
        for item in cut:
            for number, passage in enumerate(item.passages or ()):
                digest = self.encoder.input_digest(passage.input)
                location = known.get((item.docno, number, digest))
                if location is None or not self._is_complete(location.shard):
                    location = new_rows.add(item.docno, number, digest, passage.input)
                located.append(PassageRow(item.docno, number, passage, digest, location))
        return located

    def _is_complete(self, shard: int | None) -> bool:
        """Whether a shard, by its number, has all that the next generation needs of its rows."""
        if shard is None or not self.encoder.further_models:
            return True
        if shard not in self._are_complete:
            self._are_complete[shard] = self.vectors.is_complete(self.rows.shard_name(shard))
        return self._are_complete[shard]

    def write_rows(self, rows: NewRows, parent: Path) -> PassageShard:
        """Encode rows, and write them as a shard of another folder: no row of SQLite names it."""
        shard = self._write_shard(rows, parent)
        self._spare.remove(but='')
        return shard

    def _write_shard(self, rows: NewRows, parent: Path) -> PassageShard:
        encoded: dict[bytes, Encoded] = {
            digest: Encoded(vector)
            for digest, vector in self.vectors.vectors_of(rows.inputs).items()
        }
        vectors = np.empty((len(rows.digests), self._dimension), np.float32)
        for row, digest in enumerate(rows.digests):
            vectors[row] = encoded[digest].vector
        further = {}
        for kind, model in self.encoder.further_models.items():
            encoded = self.vectors.values_of(kind, rows.inputs, encoded)
            values = [encoded[digest].further[kind.name] for digest in rows.digests]
            further[kind.name] = kind.work.rows(values, model)
        content = ShardRows(
            vectors=vectors,
            documents=np.array(rows.documents, np.int32),
            numbers=np.array(rows.numbers, np.int32),
            inputs=np.frombuffer(b''.join(rows.digests), np.uint8).reshape(-1, INPUT_BYTES),
            further=further,
        )
        return write_shard(parent, content, self.generation, self.dtype)

    def _write_document(self, item: _Pending) -> None:
        """Write the parts of a document that differ from the collection's."""
        if item.known is None:
            self.rows.write_docid(item.docno, item.document.docid)
        if item.is_new_version:
            self.rows.write_version(
                item.docno,
                item.document,
                source=item.source,
                of_fields=item.fields_digest,
                of_text=item.text_digest,
            )
            # Also where the fields are as they were: this release may find them by more values.
            self.rows.write_field_values(item.docno, item.document)
        if item.is_origin_new:
            self.rows.write_origin(item.docno, item.document)
        if item.is_text_new:
            self.rows.write_text(item.docno, item.document)
        elif item.passages is not None:
            self.rows.end_passages(item.docno)

"""Documents that got another docid: in a source, one is gone and another has come with its text."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyserini_repbert.collection.store import FOREVER

_READ_AT_ONCE = 500  # documents
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Rename:
    """A document's docid before, and the one that it has now."""

    old: str
    new: str


@dataclass(frozen=True)
class _Candidate:
    """A document that is gone or new."""

    docid: str
    title: str

    @property
    def name(self) -> str:
        """The last part of its docid: the name of its file."""
        return self.docid.rpartition('/')[2]


def find_renames(
    connection: sqlite3.Connection, generation: int, source: int, gone: Sequence[int]
) -> list[Rename]:
    """Which documents of a source have only got another docid.

    Texts are compared, and each document is taken once. Of several with the same text, one with the
    same name of its file, or else the same title, is preferred.

    Parameters
    ----------
    connection : of the writer, which has staged what the source has
    generation : the one that is staged
    source : its number
    gone : the numbers of the documents that it no longer has
    """
    by_text: dict[bytes, list[_Candidate]] = {}
    for digest, candidate in _read_gone(connection, gone):
        by_text.setdefault(digest, []).append(candidate)
    if not by_text:
        return []
    renames = []
    for digest, candidate in _read_new(connection, generation, source):
        before = by_text.get(digest)
        if before:
            old = min(before, key=lambda known: _unlikeness(known, candidate))
            before.remove(old)
            renames.append(Rename(old.docid, candidate.docid))
    return renames


def _unlikeness(old: _Candidate, new: _Candidate) -> tuple[bool, bool]:
    return old.name != new.name, old.title != new.title


def _read_gone(
    connection: sqlite3.Connection, gone: Sequence[int]
) -> Iterator[tuple[bytes, _Candidate]]:
    for first in range(0, len(gone), _READ_AT_ONCE):
        docnos = gone[first : first + _READ_AT_ONCE]
        rows = connection.execute(
            'SELECT docid, title, text FROM texts JOIN documents USING (docno) '
            f'WHERE until = {FOREVER} AND docno IN (SELECT value FROM json_each(?)) ORDER BY docno',
            [json.dumps(docnos)],
        )
        yield from _digested(rows)


def _read_new(
    connection: sqlite3.Connection, generation: int, source: int
) -> Iterator[tuple[bytes, _Candidate]]:
    """The documents of a source that are staged, and were not in the generation before."""
    rows = connection.execute(
        'SELECT docid, title, text FROM staged CROSS JOIN fields USING (docno) '
        f'JOIN texts ON texts.docno = staged.docno AND texts.until = {FOREVER} '
        'JOIN documents ON documents.docno = staged.docno '
        f'WHERE fields.since = :generation AND fields.until = {FOREVER} '
        'AND fields.source = :source AND NOT EXISTS (SELECT 1 FROM fields AS before '
        'WHERE before.docno = staged.docno AND before.until = :generation) ORDER BY staged.docno',
        {'generation': generation, 'source': source},
    )
    yield from _digested(rows)


def _digested(rows: sqlite3.Cursor) -> Iterator[tuple[bytes, _Candidate]]:
    """The digest of each text, with its document.

    Of a page that is a heading alone, the title counts. Documents without any words are left out.
    """
    for docid, title, text in rows:
        words = text or (title and f'\0{title}')
        if words:
            digest = hashlib.blake2b(words.encode(), digest_size=_DIGEST_BYTES).digest()
            yield digest, _Candidate(docid, title)

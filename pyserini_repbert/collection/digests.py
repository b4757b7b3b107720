"""Digests in a generation's manifest of rows that no file of the generation repeats."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.collection.store import FOREVER

_DIGEST_BYTES = 16
_COLUMNS = (
    ('sources', ('source', 'name')),
    ('source_prefixes', ('source', 'prefix')),
    ('source_paths', ('path', 'source')),
    ('source_formats', ('source', 'format')),
)
# Counts only where it has rows.
_LINKS = ('source_links', ('source', 'link'))


def digest_sources(connection: sqlite3.Connection) -> str:
    """The sha256 of all rows about sources, in hexadecimal."""
    tables = {table: _quoted_rows(connection, table, columns) for table, columns in _COLUMNS}
    links, columns = _LINKS
    rows = _quoted_rows(connection, links, columns)
    if rows:
        tables[links] = rows
    return hashlib.sha256(json.dumps(tables).encode()).hexdigest()


def _quoted_rows(
    connection: sqlite3.Connection, table: str, columns: Sequence[str]
) -> list[tuple[str, ...]]:
    """The rows of a table as SQL spells them: another type is another value."""
    quoted = ', '.join(f'quote({column})' for column in columns)
    rows = connection.execute(f'SELECT {quoted} FROM {table} ORDER BY {columns[0]}')
    return rows.fetchall()


@dataclass(frozen=True)
class RowsDigest:
    """A digest of rows that a generation has one of for a document.

    It is the sum of the rows' digests, so a writer brings it up to date without reading the rows
    that stay.

    Attributes
    ----------
    table : whose rows
    columns : that are digested
    joined : what is joined for them
    render : a row as text
    """

    table: str
    columns: str
    joined: str
    render: Callable[..., str]

    def of_generation(self, connection: sqlite3.Connection, generation: int) -> str:
        """The digest, as 32 hexadecimal digits."""
        rows = connection.execute(
            f'SELECT {self.columns} FROM {self.table} {self.joined} WHERE since <= ? AND until > ?',
            [generation, generation],
        )
        return _rendered(self._sum(rows))

    def of_staged(self, connection: sqlite3.Connection, generation: int, before: str) -> str:
        """The digest of a generation that is staged.

        Parameters
        ----------
        connection : of the writer
        generation : the one that is staged
        before : the digest of the generation before it
        """
        ended = connection.execute(
            f'SELECT {self.columns} FROM {self.table} {self.joined} '
            f'WHERE until = ? AND until < {FOREVER} AND since < ?',
            [generation, generation],
        )
        total = int(before, 16) - self._sum(ended)
        begun = connection.execute(
            f'SELECT {self.columns} FROM staged CROSS JOIN {self.table} USING (docno) '
            f'{self.joined} WHERE since = ? AND until = {FOREVER}',
            [generation],
        )
        return _rendered(total + self._sum(begun))

    def _sum(self, rows: Iterable[tuple[Any, ...]]) -> int:
        total = 0
        for row in rows:
            digest = hashlib.blake2b(self.render(*row).encode(), digest_size=_DIGEST_BYTES).digest()
            total += int.from_bytes(digest)
        return total


def _owner(docno: object, docid: object, source: object) -> str:
    return f'{docno!r} {source!r} {docid}'


# The number, the docid and the source of each document.
OWNERS = RowsDigest('fields', 'docno, docid, source', 'LEFT JOIN documents USING (docno)', _owner)
# The location of each document in its source.
ORIGINS = RowsDigest('origins', 'docno, digest', '', '{!r} {!r}'.format)


def _rendered(total: int) -> str:
    """A sum as hexadecimal digits; what does not fit into them is left out."""
    digits = 2 * _DIGEST_BYTES
    return f'{total % 16**digits:0{digits}x}'

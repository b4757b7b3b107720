"""Digests in a generation's manifest of rows that no file of the generation repeats."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable

from pyserini_repbert.collection.store import FOREVER

_OWNER_BYTES = 16
_COLUMNS = (
    ('sources', ('source', 'name')),
    ('source_prefixes', ('source', 'prefix')),
    ('source_paths', ('path', 'source')),
    ('source_formats', ('source', 'format')),
)


def digest_sources(connection: sqlite3.Connection) -> str:
    """The sha256 of all rows about sources, in hexadecimal."""
    tables = {}
    for table, columns in _COLUMNS:
        # As SQL spells them: another type is another value.
        quoted = ', '.join(f'quote({column})' for column in columns)
        rows = connection.execute(f'SELECT {quoted} FROM {table} ORDER BY {columns[0]}')
        tables[table] = rows.fetchall()
    return hashlib.sha256(json.dumps(tables).encode()).hexdigest()


def digest_owners(connection: sqlite3.Connection, generation: int) -> str:
    """A digest of the number, the docid and the source of each document of a generation.

    It is the sum of the documents' digests, so a writer brings it up to date without reading the
    documents that stay: see `update_owners`.

    Returns 32 hexadecimal digits.
    """
    rows = connection.execute(
        'SELECT docno, docid, source FROM fields LEFT JOIN documents USING (docno) '
        'WHERE since <= ? AND until > ?',
        [generation, generation],
    )
    return _rendered(_sum_owners(rows))


def update_owners(before: str, connection: sqlite3.Connection, generation: int) -> str:
    """`digest_owners` of a generation that is staged.

    Parameters
    ----------
    before : that of the generation before it
    connection : of the writer
    generation : the one that is staged
    """
    ended = connection.execute(
        'SELECT docno, docid, source FROM fields JOIN documents USING (docno) '
        f'WHERE until = ? AND until < {FOREVER} AND since < ?',
        [generation, generation],
    )
    total = int(before, 16) - _sum_owners(ended)
    begun = connection.execute(
        'SELECT docno, docid, source FROM staged CROSS JOIN fields USING (docno) '
        f'JOIN documents USING (docno) WHERE since = ? AND until = {FOREVER}',
        [generation],
    )
    return _rendered(total + _sum_owners(begun))


def _sum_owners(rows: Iterable[tuple[object, object, object]]) -> int:
    total = 0
    for docno, docid, source in rows:
        owner = f'{docno!r} {source!r} {docid}'
        digest = hashlib.blake2b(owner.encode(), digest_size=_OWNER_BYTES).digest()
        total += int.from_bytes(digest)
    return total


def _rendered(total: int) -> str:
    """A sum as hexadecimal digits; what does not fit into them is left out."""
    digits = 2 * _OWNER_BYTES
    return f'{total % 16**digits:0{digits}x}'

"""The database of a collection, `collection.sqlite`: its schema and its connections.

Rows of documents have two numbers, `since` and `until`: a generation g sees a row where
since <= g < until. A writer commits under the next generation's number, which no reader sees.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import AbstractContextManager, closing
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert import sqlite_files
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.index.manifest import COLLECTION_FILE
from pyserini_repbert.sqlite_files import (
    SqliteForm,
    file_address,
    format_version,
    make_tables,
    transaction,
)

STORE = COLLECTION_FILE
FOREVER = 2**62  # `until` of a row that is not replaced yet
# Of rows that a generation sees.
ALIVE = 'since <= :generation AND until > :generation'
# What to do about a file of a collection that is damaged.
ADVICE = 'restore it from a copy, or build the collection again'
_WAIT = 60  # seconds for another connection's lock
_CACHE = -64_000  # negative: in kB
# Anserini refuses contents of only these characters, which Java's `trim` removes.
_BLANK = ''.join(map(chr, range(33)))
_OCTAL = re.compile(r'\\([0-7]{3})')
# File systems over a network, on which WAL's shared memory does not work.
_NETWORK = ('nfs', 'cifs', 'smb', '9p', 'fuse.sshfs', 'lustre', 'gpfs', 'afs', 'ceph', 'glusterfs')

SCHEMA = f"""
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    manifest_sha256 TEXT NOT NULL,
    published TEXT NOT NULL
);
CREATE TABLE sources (source INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE documents (docno INTEGER PRIMARY KEY, docid TEXT NOT NULL UNIQUE);
CREATE TABLE fields (
    docno INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    source INTEGER NOT NULL,
    digest BLOB NOT NULL,
    text_digest BLOB NOT NULL,
    fields TEXT NOT NULL,
    PRIMARY KEY (docno, since)
) WITHOUT ROWID;
CREATE TABLE field_values (
    field TEXT NOT NULL,
    type TEXT NOT NULL,
    value NOT NULL,
    docno INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (field, type, value, docno, since)
) WITHOUT ROWID;
CREATE TABLE texts (
    docno INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (docno, since)
);
CREATE TABLE passages (
    docno INTEGER NOT NULL,
    number INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    input BLOB NOT NULL,
    shard INTEGER NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (docno, since, number)
) WITHOUT ROWID;
CREATE TABLE shards (
    shard INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    rows INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE TABLE dead_rows (
    shard INTEGER NOT NULL,
    row INTEGER NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (shard, row)
) WITHOUT ROWID;
CREATE TABLE staged (docno INTEGER PRIMARY KEY, is_text INTEGER NOT NULL);
CREATE TABLE identity (id TEXT NOT NULL);
CREATE TABLE source_prefixes (source INTEGER PRIMARY KEY, prefix TEXT NOT NULL);
CREATE TABLE source_paths (path TEXT PRIMARY KEY, source INTEGER NOT NULL);
CREATE TABLE source_formats (source INTEGER PRIMARY KEY, format TEXT NOT NULL);
CREATE TABLE source_links (source INTEGER PRIMARY KEY, link TEXT NOT NULL);
CREATE TABLE source_syncs (
    source INTEGER PRIMARY KEY,
    synced TEXT NOT NULL,
    unread TEXT NOT NULL
);
CREATE TABLE renamed (old TEXT PRIMARY KEY, new TEXT NOT NULL);
CREATE TABLE origins (
    docno INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    file TEXT NOT NULL,
    outline TEXT NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (docno, since)
) WITHOUT ROWID;
CREATE TABLE source_readers (
    source INTEGER PRIMARY KEY,
    versions TEXT NOT NULL,
    synced TEXT NOT NULL
);
CREATE TABLE source_files (
    source INTEGER NOT NULL,
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    is_settled INTEGER NOT NULL,
    digest BLOB NOT NULL,
    way TEXT NOT NULL,
    docid TEXT NOT NULL,
    documents INTEGER NOT NULL,
    reason TEXT,
    reason_group TEXT,
    PRIMARY KEY (source, file)
) WITHOUT ROWID;
CREATE TABLE docid_forms (
    form TEXT NOT NULL,
    docno INTEGER NOT NULL,
    PRIMARY KEY (form, docno)
) WITHOUT ROWID;
CREATE INDEX origins_by_file ON origins (file);
CREATE INDEX origins_ended ON origins (until) WHERE until < {FOREVER};
CREATE INDEX passages_by_input ON passages (input);
CREATE INDEX values_by_document ON field_values (docno);
CREATE INDEX fields_ended ON fields (until) WHERE until < {FOREVER};
CREATE INDEX values_ended ON field_values (until) WHERE until < {FOREVER};
CREATE INDEX texts_ended ON texts (until) WHERE until < {FOREVER};
CREATE INDEX passages_ended ON passages (until) WHERE until < {FOREVER};
"""
_KINDS = {'INTEGER': int, 'TEXT': str, 'BLOB': bytes}
# Of documents that are deleted, or whose place is not known; and of files that are read.
_OPTIONAL_COLUMNS = (
    'source',
    'digest',
    'text_digest',
    'file',
    'outline',
    'reason',
    'reason_group',
)
VERSIONED = ('fields', 'field_values', 'texts', 'passages', 'origins')


def contents_of(title: str, text: str, language: str) -> str:
    """What Lucene gets of a document, '' for none; SQL knows this function, too.

    Parameters
    ----------
    title, text : of the document
    language : of the collection's settings
    """
    contents = unite(f'{title} {text}' if title else text, language)
    return contents if contents.strip(_BLANK) else ''


_FORM = SqliteForm(
    application=0x70726263,
    version=1,
    schema=SCHEMA,
    refusal='is not a collection of this package',
    advice=ADVICE,
)


def open_for_writing(folder: Path, is_new: bool = True) -> sqlite3.Connection:
    """A writer's connection.

    The caller holds the lock of the collection's writer.

    Parameters
    ----------
    folder : of the collection
    is_new : create the file if there is none
    """
    path = folder / STORE
    mode = 'rwc' if is_new else 'rw'
    address = file_address(path, f'mode={mode}')
    with sqlite_errors(path):
        connection = sqlite3.connect(
            address, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True
        )
        journal = 'DELETE' if is_on_network(folder) else 'WAL'
        connection.execute(f'PRAGMA journal_mode = {journal}')
        connection.execute('PRAGMA synchronous = FULL')
        connection.execute(f'PRAGMA cache_size = {_CACHE}')
        if format_version(connection) == 0:
            with transaction(connection):
                _FORM.make_in(connection, path)
        _FORM.check(connection, path)
        check_types(connection)
    return connection


def check_types(connection: sqlite3.Connection) -> None:
    """Let a connection compare the type of each value that it reads with its column's type.

    SQLite itself stores any value in any column. Reading then raises sqlite3.DataError, which
    `sqlite_errors` says in one line.
    """
    connection.row_factory = _typed_row


def _typed_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    kinds = _column_kinds()
    for column, value in zip(cursor.description, row, strict=True):
        kind = kinds.get(column[0])
        if kind is not None and not isinstance(value, kind):
            raise sqlite3.DataError(f'column {column[0]} has the value {value!r:.40}')
    return row


@cache
def _column_kinds() -> dict[str, tuple[type, ...]]:
    """The types of each column's values, by its name, which has the same types in all tables."""
    kinds: dict[str, tuple[type, ...]] = {}
    with closing(sqlite3.connect(':memory:')) as model:
        make_tables(model, SCHEMA)
        tables = model.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for _, name, kind, *_ in model.execute(f'PRAGMA table_info({table})'):
                if kind in _KINDS:
                    optional = (type(None),) if name in _OPTIONAL_COLUMNS else ()
                    kinds[name] = (_KINDS[kind], *optional)
    return kinds


def open_for_reading(folder: Path) -> sqlite3.Connection:
    """A reader's connection; threads may share it, one at a time.

    Raises InputError for a folder that is not a collection.
    """
    path = folder / STORE
    if not path.is_file():
        raise InputError(
            f'folder {folder} holds no collection: build one with `index sync`, or check the path'
        )
    # where no file can be made, SQLite needs those of the WAL, which a writer leaves that runs
    has_wal = path.with_name(f'{STORE}-wal').is_file()
    is_immutable = not os.access(folder, os.W_OK) and not has_wal
    mode = 'immutable=1' if is_immutable else 'mode=ro'
    address = file_address(path, mode)
    with sqlite_errors(path):
        connection = sqlite3.connect(
            address, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True
        )
        connection.create_function('contents_of', 3, contents_of, deterministic=True)
        _FORM.check(connection, path)
    return connection


def damage(folder: Path, what: str) -> DamagedFileError:
    """The error for something in a collection that differs from what was written."""
    return DamagedFileError(
        f'collection {folder} is damaged, {what}: `index check` names all that differs; '
        'restore the folder from a copy, or build the collection again'
    )


def sqlite_errors(path: Path) -> AbstractContextManager[None]:
    """Errors of SQLite about the file `path` as one line."""
    return sqlite_files.sqlite_errors(path, ADVICE)


def is_on_network(folder: Path) -> bool:
    """Whether a folder is on a network file system, as far as Linux says."""
    mounts = Path('/proc/self/mountinfo')
    if not mounts.is_file():
        return False
    resolved = folder.resolve()
    longest = ''
    kind = ''
    for line in mounts.read_text(encoding='utf-8', errors='surrogateescape').rstrip().split('\n'):
        before, _, after = line.partition(' - ')
        # Spaces and backslashes are written as octal numbers.
        mount_point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), before.split()[4])
        if len(mount_point) >= len(longest) and resolved.is_relative_to(mount_point):
            longest = mount_point
            kind = after.split()[0]
    return kind.startswith(_NETWORK)

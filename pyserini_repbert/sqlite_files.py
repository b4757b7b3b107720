"""Files of SQLite: transactions, what a file may hold, and errors as one line."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from pyserini_repbert.errors import DamagedFileError, InputError, within_limits

# A full disk leaves no room for what a writer shares with readers.
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
# What SQLite has in the place of a column's number where an index is of an expression.
_EXPRESSION = -2


def file_address(path: Path, setting: str) -> str:
    """The address under which SQLite opens a file; `setting` is, for example, 'mode=ro'."""
    return f'file:{quote(os.fsencode(path.absolute()))}?{setting}'


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements within are committed together, or none."""
    connection.execute('BEGIN IMMEDIATE')
    try:
        yield
        connection.execute('COMMIT')
    except BaseException:
        if connection.in_transaction:
            connection.execute('ROLLBACK')
        raise


def make_tables(connection: sqlite3.Connection, schema: str) -> None:
    """Execute the statements of a schema. Each ends with a semicolon at the end of a line."""
    for statement in schema.split(';\n'):
        connection.execute(statement)


def format_version(connection: sqlite3.Connection) -> int:
    """The format version in a file's header; 0: no tables were made yet."""
    return int(connection.execute('PRAGMA user_version').fetchone()[0])


@dataclass(frozen=True)
class SqliteForm:
    """What a SQLite file of this package holds, and the numbers in its header that say so.

    Attributes
    ----------
    application : says that the file is ours
    version : of the format
    schema : the statements that make its tables and indexes, as `make_tables` takes them
    refusal : the message about another file, after its path
    advice : what to do about a damaged file
    """

    application: int
    version: int
    schema: str
    refusal: str
    advice: str

    def make_in(self, connection: sqlite3.Connection, path: Path) -> None:
        """Make the tables, in a transaction of the caller.

        Raises DamagedFileError for a file that holds other tables.
        """
        if connection.execute('SELECT COUNT(*) FROM sqlite_schema').fetchone()[0]:
            raise self._refused(path)
        make_tables(connection, self.schema)
        connection.execute(f'PRAGMA application_id = {self.application}')
        connection.execute(f'PRAGMA user_version = {self.version}')

    def check(self, connection: sqlite3.Connection, path: Path) -> None:
        """Raise DamagedFileError for a file of another form, and for one that computes."""
        if connection.execute('PRAGMA application_id').fetchone()[0] != self.application:
            raise self._refused(path)
        version = format_version(connection)
        if version != self.version:
            raise DamagedFileError(
                f'{path} has format version {version}, this release reads {self.version}: use the '
                'release that wrote it'
            )
        refuse_code(connection, path, self.advice, self.schema)

    def _refused(self, path: Path) -> DamagedFileError:
        return DamagedFileError(f'{path} {self.refusal}: check the path')


def refuse_code(connection: sqlite3.Connection, path: Path, advice: str, schema: str) -> None:
    """Refuse a file that computes: one with views, triggers or virtual tables instead of data, or
    one in which a table or an index differs from `schema`, for example by a generated column.

    Raises DamagedFileError, which ends with `advice`, for such a file.
    """
    row = connection.execute(
        "SELECT type, name FROM sqlite_schema WHERE type NOT IN ('table', 'index') "
        "OR sql LIKE 'CREATE VIRTUAL %' LIMIT 1"
    ).fetchone()
    if row is not None:
        kind, name = row
        raise DamagedFileError(
            f"{path} is damaged, it has a {kind} '{name}' that does not belong there: {advice}"
        )
    expected = _made_statements(schema)
    for name, statement in _statements(connection).items():
        if name in expected and statement != expected[name]:
            raise DamagedFileError(f'{path} is damaged, {name} has another definition: {advice}')
        is_conditional = name.startswith('index ') and ' where ' in statement.casefold()
        if name not in expected and is_conditional:
            raise DamagedFileError(
                f'{path} is damaged, it has an {name} that does not belong there: {advice}'
            )
    _refuse_computed_indexes(connection, path, advice)


@cache
def _made_statements(schema: str) -> dict[str, str]:
    """What makes each table and index of a schema, as SQLite keeps it."""
    with contextlib.closing(sqlite3.connect(':memory:')) as model:
        make_tables(model, schema)
        return _statements(model)


def _refuse_computed_indexes(connection: sqlite3.Connection, path: Path, advice: str) -> None:
    """Refuse a file with an index of expressions: they are computed when a row is written."""
    row = connection.execute(
        'SELECT made.name FROM sqlite_schema AS made, pragma_index_info(made.name) AS part '
        f"WHERE made.type = 'index' AND part.cid = {_EXPRESSION} LIMIT 1"
    ).fetchone()
    if row is not None:
        raise DamagedFileError(
            f"{path} is damaged, it has an index '{row[0]}' that does not belong there: {advice}"
        )


def integrity_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """What SQLite finds wrong with the structure of a file, a line each, at most 20."""
    for (problem,) in connection.execute('PRAGMA integrity_check(20)'):
        if problem != 'ok':
            yield f'SQLite finds: {" ".join(str(problem).split())}'


def schema_differences(connection: sqlite3.Connection, schema: str) -> Iterator[str]:
    """How the tables and indexes of a file differ from a schema's, a phrase each."""
    expected = _made_statements(schema)
    found = _statements(connection)
    for name in expected:
        if name not in found:
            yield f'{name} is missing'
        elif found[name] != expected[name]:
            yield f'{name} has another definition'
    for name in found:
        if name not in expected:
            yield f'{name} does not belong there'


def _statements(connection: sqlite3.Connection) -> dict[str, str]:
    """What makes each table, index, view and trigger, by its kind and name, in their order."""
    # Objects that SQLite creates automatically, for a table's keys, have no statement.
    rows = connection.execute(
        'SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name'
    )
    return {f"{kind} '{name}'": ' '.join(statement.split()) for kind, name, statement in rows}


@contextmanager
def sqlite_errors(path: Path, advice: str) -> Iterator[None]:
    """Errors of SQLite about the file `path` as one line.

    `advice` says what to do about a damaged file.
    """
    with within_limits(path):
        try:
            yield
        except sqlite3.OperationalError as error:
            # Python itself raises it for text that is not UTF-8, without a number.
            code = getattr(error, 'sqlite_errorcode', sqlite3.SQLITE_ERROR)
            if code in _FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
            if code == sqlite3.SQLITE_ERROR:
                # The statements are ours, so the file lacks something that they name.
                raise _damage(path, error, advice) from error
            raise InputError(
                f'{path} could not be used ({error}): check the permissions of it and of its folder'
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Where an error of SQLite quotes bytes that are not text, Python cannot read it.
            raise _damage(path, error, advice) from error


def _damage(path: Path, error: Exception, advice: str) -> DamagedFileError:
    reason = ascii(' '.join(str(error).split()))[1:-1]
    return DamagedFileError(f'{path} is damaged ({reason}): {advice}')

"""Files of SQLite: transactions, and errors as one line."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_repbert.errors import DamagedFileError, InputError, within_limits


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


@contextmanager
def sqlite_errors(path: Path, advice: str) -> Iterator[None]:
    """Errors of SQLite about the file `path` as one line.

    `advice` says what to do about a damaged file.
    """
    with within_limits(path):
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
            raise InputError(
                f'{path} could not be used ({error}): check its permissions and those of its folder'
            ) from error
        except sqlite3.DatabaseError as error:
            raise DamagedFileError(f'{path} is damaged ({error}): {advice}') from error

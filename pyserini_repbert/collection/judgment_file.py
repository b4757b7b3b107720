"""The file of judgments, `judgments.sqlite`: its tables, and connections to it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.sqlite_files import (
    SqliteForm,
    file_address,
    format_version,
    schema_differences,
    sqlite_errors,
    transaction,
)

ADVICE = 'restore it from a copy'
_WAIT = 60  # seconds for another connection's lock

_SCHEMA = """
CREATE TABLE questions (number INTEGER PRIMARY KEY, qid TEXT NOT NULL UNIQUE, text TEXT UNIQUE);
CREATE TABLE pools (
    pool TEXT PRIMARY KEY,
    question TEXT NOT NULL,
    docids TEXT NOT NULL,
    made TEXT NOT NULL
);
CREATE TABLE judgments (
    question TEXT NOT NULL,
    docid TEXT NOT NULL,
    judge TEXT NOT NULL,
    grade INTEGER NOT NULL,
    comment TEXT NOT NULL,
    pool TEXT NOT NULL,
    judged TEXT NOT NULL,
    generation TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (question, docid, judge)
);
CREATE TABLE learnings (
    number INTEGER PRIMARY KEY,
    folder TEXT NOT NULL,
    learned TEXT NOT NULL,
    generation INTEGER NOT NULL,
    judgments INTEGER NOT NULL,
    encoder_weights TEXT NOT NULL,
    in_use INTEGER NOT NULL,
    report TEXT NOT NULL
);
CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), state TEXT NOT NULL);
CREATE TABLE measured (
    generation INTEGER PRIMARY KEY,
    report TEXT NOT NULL
);
CREATE TABLE measured_rankings (qid TEXT PRIMARY KEY, docids TEXT NOT NULL);
CREATE TABLE next_questions (qid TEXT PRIMARY KEY, place INTEGER, reason TEXT);
CREATE TABLE model_grades (
    question TEXT NOT NULL,
    docid TEXT NOT NULL,
    judge TEXT NOT NULL,
    grade INTEGER NOT NULL,
    judged TEXT NOT NULL,
    generation TEXT NOT NULL,
    version TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_sha256 TEXT NOT NULL,
    PRIMARY KEY (question, docid, judge)
);
CREATE TABLE followed (manifest TEXT NOT NULL);
"""
_FORM = SqliteForm(
    application=0x70726A64,
    version=1,
    schema=_SCHEMA,
    refusal='does not hold judgments',
    advice=ADVICE,
)


class JudgmentFile:
    """The file, which is made when it is first written.

    Every call opens the file and closes it, so that threads and programs share it.

    Parameters
    ----------
    path : of the file
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection with a transaction. Creates the file if there is none."""
        with sqlite_errors(self.path, ADVICE):
            connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            with contextlib.closing(connection), transaction(connection):
                if format_version(connection) == 0:
                    _FORM.make_in(connection, self.path)
                _FORM.check(connection, self.path)
                yield connection

    def select(self, statement: str, **parameters: Any) -> list[Any]:
        """The rows of a query; none without the file."""
        if not self.path.is_file():
            return []
        with self._reading() as connection:
            if connection is None:
                return []
            return connection.execute(statement, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection to the file; None if another program is about to make its tables."""
        address = file_address(self.path, 'mode=ro')
        with sqlite_errors(self.path, ADVICE):
            connection = sqlite3.connect(address, timeout=_WAIT, uri=True)
            with contextlib.closing(connection):
                if format_version(connection) == 0:
                    yield None
                    return
                _FORM.check(connection, self.path)
                yield connection

    def copy_to(self, path: Path) -> None:
        """Copy the file; raises DamagedFileError for one that holds other tables."""
        with self._reading() as reading:
            if reading is not None:
                with contextlib.closing(sqlite3.connect(path)) as writing:
                    reading.backup(writing)

    def parsed(self, text: Any, kind: type) -> Any:
        """The list or object of a JSON text. Raises DamagedFileError for anything else."""
        if not is_json(text, kind):
            raise DamagedFileError(
                f'{self.path} is damaged, its JSON is not in the stored form: {ADVICE}'
            )
        return json.loads(text)


def table_problems(connection: sqlite3.Connection) -> list[str]:
    """How the tables of a file differ from those that this release makes, a phrase each."""
    return list(schema_differences(connection, _SCHEMA))


def is_json(text: object, kind: type) -> bool:
    """Whether a stored value is a JSON text of a list or an object."""
    try:
        return isinstance(text, str) and isinstance(parse_json(text), kind)
    except ValueError:
        return False

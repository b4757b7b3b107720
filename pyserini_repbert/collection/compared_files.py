"""The values of the fields of files and sources, as filters compare them."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from pyserini_repbert.collection.file_values import (
    MODIFIED,
    SOURCE,
    TYPE,
    FileOfSource,
    compared_fields,
    file_fields,
)
from pyserini_repbert.collection.stored_values import typed_values
from pyserini_repbert.data.file_types import suffix_of


class ComparedFiles:
    """The values of files' fields, in a table like `field_values`: filters read both alike.

    Threads may share it.

    Parameters
    ----------
    files : the paths of all
    times : when they were changed, in nanoseconds, if known
    sources : the names of sources, by number
    """

    def __init__(
        self,
        files: Iterable[str],
        times: Mapping[FileOfSource, int],
        sources: Mapping[int, str],
    ) -> None:
        self._asking = threading.Lock()
        self._connection = sqlite3.connect(':memory:', check_same_thread=False)
        self._connection.execute(
            'CREATE TABLE file_values (field TEXT, type TEXT, value TEXT, source INTEGER, '
            'file TEXT)'
        )
        for rows in (_values_of_names(files), _values_of_times(times), _values_of_sources(sources)):
            self._connection.executemany('INSERT INTO file_values VALUES (?, ?, ?, ?, ?)', rows)

    def files_where(self, condition: str, values: Sequence[Any]) -> list[tuple[int | None, str]]:
        """(source, path) of the files with a value that meets a condition; None: of any source."""
        statement = f'SELECT DISTINCT source, file FROM file_values WHERE {condition}'
        with self._asking:
            return self._connection.execute(statement, {'rows': json.dumps(values)}).fetchall()


def _values_of_names(files: Iterable[str]) -> Iterator[tuple[object, ...]]:
    """The values that follow from the names of files, in all sources."""
    for file in files:
        fields = compared_fields(file_fields(file, modified=None))
        for name, kind, value in typed_values(fields):
            yield name, kind, value, None, file
        # A person may ask for the suffix: `type:docx`.
        suffix = suffix_of(file)
        if suffix not in ('', fields[TYPE]):
            yield TYPE, 'text', suffix, None, file


def _values_of_times(times: Mapping[FileOfSource, int]) -> Iterator[tuple[object, ...]]:
    """The days on which files were changed."""
    for known, modified in times.items():
        fields = file_fields(known.file, modified)
        if MODIFIED in fields:
            yield MODIFIED, 'date', fields[MODIFIED], known.source, known.file


def _values_of_sources(sources: Mapping[int, str]) -> Iterator[tuple[object, ...]]:
    """The names of sources: in whole, and their last parts."""
    for number, name in sources.items():
        fields = {SOURCE: [name, PurePath(name).name or name]}
        for field, kind, value in typed_values(fields):
            yield field, kind, value, number, ''

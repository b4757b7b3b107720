"""What the name of a file, its time and its source say of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath, PurePosixPath
from typing import NamedTuple

from pyserini_repbert.data.file_types import file_type

TYPE = 'type'
FOLDER = 'folder'
MODIFIED = 'modified'
SOURCE = 'source'
FILE_FIELDS = (TYPE, FOLDER, MODIFIED)
_NANOSECONDS = 10**9


class FileOfSource(NamedTuple):
    """A file of a source, by the source's number and the file's path in it."""

    source: int
    file: str


def file_fields(file: str, modified: int | None) -> dict[str, str]:
    """The fields of a file, as an answer shows them.

    Parameters
    ----------
    file : its path in its source, with slashes
    modified : when it was last changed, in nanoseconds; None if that is not known
    """
    fields = {TYPE: file_type(file)}
    folder = str(PurePosixPath(file).parent)
    if folder != '.':
        fields[FOLDER] = folder
    day = '' if modified is None else _day_of(modified)
    if day:
        fields[MODIFIED] = day
    return fields


def _day_of(modified: int) -> str:
    """A day in UTC, as an ISO date; '' for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(modified // _NANOSECONDS, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ''


def shown_sources(names: Mapping[int, str]) -> dict[int, str]:
    """What sources are called in answers, by number: the last part of a path, if no other has it.

    `names` are those that the collection stores, by number.
    """
    last_parts = {number: PurePath(name).name or name for number, name in names.items()}
    n_having = Counter(last_parts.values())
    shown = {}
    for number, name in names.items():
        is_distinct = n_having[last_parts[number]] == 1
        shown[number] = last_parts[number] if is_distinct else name
    return shown


def compared_fields(fields: Mapping[str, str]) -> dict[str, str | list[str]]:
    """The fields of a file with all values that are counted: the folders around its own, too."""
    compared: dict[str, str | list[str]] = dict(fields)
    if FOLDER in fields:
        folder = PurePosixPath(fields[FOLDER])
        around = [str(parent) for parent in folder.parents]
        compared[FOLDER] = [str(folder), *around[:-1]]
    return compared

"""Readers of a user's own: functions that take a path and give its documents, by suffix.

Installed packages name theirs as entry points of the group `pyserini_repbert.readers`; the command
line names others as `.suffix=MODULE:FUNCTION`. Code is never named by data.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import entry_points

# Takes a file, and gives its text, or documents as `Collection.sync` takes them.
OwnReader = Callable[[Path], str | Iterable[Any]]
ENTRY_POINTS = 'pyserini_repbert.readers'


@cache
def installed_readers() -> dict[str, OwnReader]:
    """The readers of installed packages, by suffix.

    Raises InputError for two packages that read the same suffix.
    """
    readers: dict[str, OwnReader] = {}
    for entry_point in entry_points(ENTRY_POINTS):
        suffix = checked_suffix(entry_point.name)
        if suffix in readers:
            raise InputError(f"two packages read '{suffix}': uninstall one of them")
        readers[suffix] = entry_point.load()
    return readers


def named_reader(text: str) -> tuple[str, OwnReader]:
    """The suffix and the reader that '.suffix=MODULE:FUNCTION' names.

    Raises InputError for another form, and for a function that cannot be imported.
    """
    suffix, _, name = text.partition('=')
    module, _, function = name.partition(':')
    if not module or not function:
        raise InputError(f"reader {text[:80]!r}: expected '.suffix=MODULE:FUNCTION'")
    try:
        reader = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f'reader {name[:80]!r} cannot be imported: {error}') from error
    if not callable(reader):
        raise InputError(f'reader {name[:80]!r} is not a function: it has to take a path')
    return checked_suffix(suffix), reader


def checked_suffix(suffix: str) -> str:
    """A suffix in small letters. Raises InputError for one that does not begin with a dot."""
    if not suffix.startswith('.') or len(suffix) < 2 or '/' in suffix:
        raise InputError(f"suffix {suffix[:40]!r} of a reader: expected one such as '.tex'")
    return suffix.lower()

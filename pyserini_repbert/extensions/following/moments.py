"""`QuietMoments`: when a folder has changed, and is quiet again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyserini_repbert.data.file_selection import is_unwanted
from pyserini_repbert.errors import InputError, needs

# So long nothing changes in a quiet moment. A folder that never is has one every so often.
_QUIET_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
# How long a look for changes waits.
_LOOK_SECONDS = 0.5


class QuietMoments:
    """The quiet moments of a folder, or of a file.

    A folder that vanishes, and one that is there again, have changed.

    Parameters
    ----------
    corpus : the folder, with all below it, or the file

    Attributes
    ----------
    corpus : as given

    Raises InputError if there is neither, MissingDependencyError without the package
    `watchfiles`.
    """

    def __init__(self, corpus: Path) -> None:
        if not corpus.exists():
            raise InputError(
                f"'{corpus}' is not a folder or a file of this machine: only these can be followed",
                parameters=('corpus', 'follow'),
            )
        self.corpus = corpus
        self._ended = threading.Event()
        self._file = corpus.absolute() if corpus.is_file() else None
        # A file that is replaced is another one: its folder tells.
        self._folder = corpus.absolute() if self._file is None else corpus.absolute().parent
        self._begin()

    @property
    def have_ended(self) -> bool:
        """Whether watching has ended."""
        return self._ended.is_set()

    def end(self) -> None:
        """Watch no longer; another thread that waits returns at once."""
        self._ended.set()

    def wait(self) -> bool:
        """Wait for a moment; returns whether there was a change, after which all is quiet."""
        if _identity(self._folder) == self._identity:
            if self._identity is None:
                self._ended.wait(_LOOK_SECONDS)
                return False
            return bool(next(self._changes, ()))
        self._begin()
        return True

    def _begin(self) -> None:
        """Watch the folder that is there now, if one is."""
        self._identity = _identity(self._folder)
        if self._identity is not None:
            self._changes = self._watch()
            # From here on, nothing is missed.
            next(self._changes)

    def _watch(self) -> Iterator[set[Any]]:
        """The changes since the last look; none if nothing has changed for a while."""
        with needs('watchfiles', 'following a folder', 'follow'):
            from watchfiles import watch

        return watch(
            self._folder,
            watch_filter=self._counts,
            debounce=round(1000 * _LONGEST_SECONDS),
            step=round(1000 * _QUIET_SECONDS),
            rust_timeout=round(1000 * _LOOK_SECONDS),
            yield_on_timeout=True,
            stop_event=self._ended,
            recursive=self._file is None,
        )

    def _counts(self, change: Any, path: str) -> bool:
        """Whether a change is of what a sync reads: not of hidden files, caches and backups."""
        if self._file is not None:
            return Path(path) == self._file
        *folders, name = Path(path).relative_to(self._folder).parts or ('',)
        if any(is_unwanted(folder, is_folder=True) for folder in folders):
            return False
        return not is_unwanted(name, is_folder=False)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Which folder it is; None if there is none."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""Which files of a folder belong to its corpus: patterns, and what no corpus has.

Hidden files, caches and backups are left out: `.git`, `node_modules`, `__pycache__`, `a.md~`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.data.own_readers import OwnReader
from pyserini_repbert.data.unread_files import (
    BROKEN_LINK,
    EXCLUDED,
    HIDDEN,
    LEAVING_LINK,
    NO_FILE,
    FileGroup,
    UnreadFile,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import leads_somewhere

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_CACHES = frozenset(('node_modules', 'bower_components', '__pycache__', 'site-packages'))
_BACKUP = re.compile(r'.*~|#.*#|~\$.*|.*\.(?:bak|orig|rej|swp|swo|tmp)', re.IGNORECASE)
# A file of the system, which no one wrote.
_SYSTEM_FILES = frozenset(('thumbs.db', 'desktop.ini'))
_GITIGNORE = '.gitignore'
# A pattern is matched in time that grows with a name's length to the power of its stars.
_MOST_STARS = 3


@dataclass(frozen=True)
class FileSelection:
    """Which files of a folder are read, by readers of whose, and what of a page or a table.

    Attributes
    ----------
    include : patterns as in .gitignore: only files that match one are read; empty: all files
    exclude : patterns of files that are not read
    gitignore : leave out what the folder's .gitignore files name
    readers : a user's own readers, by suffix
    main_content : leave out navigation, headers and footers of pages; None: as it is stored with
        the source, otherwise not
    title_column : the column of tables that is the title of their rows; '': as the tables say;
        None: as it is stored with the source, otherwise as the tables say
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = False
    readers: Mapping[str, OwnReader] = field(default_factory=dict)
    main_content: bool | None = None
    title_column: str | None = None


class FolderFiles:
    """The files of a folder, sorted by path, and those left out.

    Attributes
    ----------
    files : those that a reader may read
    left_out : files, and folders with all that is in them
    """

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.left_out: list[UnreadFile] = []

    def leave_out(self, path: Path, group: FileGroup, reason: str) -> None:
        """Add a file or folder that is not read."""
        self.left_out.append(UnreadFile(path, group, reason))


@dataclass(frozen=True)
class _Ignored:
    """What a .gitignore file names, below its folder."""

    folder: Path
    patterns: GitIgnoreSpec

    def has(self, path: Path, is_folder: bool) -> bool:
        """Whether a file or folder is named."""
        name = path.relative_to(self.folder).as_posix()
        return self.patterns.match_file(f'{name}/' if is_folder else name)


def select_files(
    folder: Path, selection: FileSelection | None = None, with_hidden: bool = False
) -> FolderFiles:
    """The files of a folder and of the folders in it.

    A link to another file of the folder is one of them. Links to folders are not followed.

    Parameters
    ----------
    folder : the folder
    selection : which files are wanted; default: all
    with_hidden : whether hidden files, caches and backups are files like others

    Raises InputError for a folder that cannot be read: its files are not there by mistake.
    """
    walk = _Walk(folder, selection or FileSelection(), with_hidden)
    walk.enter(folder, ignored=())
    walk.found.files.sort()
    return walk.found


class _Walk:
    """One way through a folder.

    Parameters
    ----------
    folder : its root
    selection : which files are wanted
    with_hidden : whether hidden files are files like others
    """

    def __init__(self, folder: Path, selection: FileSelection, with_hidden: bool) -> None:
        self.found = FolderFiles()
        self._root = folder
        self._resolved_root = folder.resolve()
        self._include = checked_patterns(selection.include) if selection.include else None
        self._exclude = checked_patterns(selection.exclude) if selection.exclude else None
        self._gitignore = selection.gitignore
        self._with_hidden = with_hidden

    def enter(self, folder: Path, ignored: tuple[_Ignored, ...]) -> None:
        """Go through a folder and the folders in it."""
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(
                f'folder {error.filename} cannot be read ({error.strerror}): check its permissions'
            ) from error
        if self._gitignore:
            ignored = (*ignored, *_read_gitignore(folder))
        for entry in entries:
            path = Path(entry.path)
            if self._is_left_out(path, entry, ignored):
                continue
            if entry.is_dir(follow_symlinks=False):
                self.enter(path, ignored)
            elif _is_file(entry):
                self.found.files.append(path)
            elif not entry.is_dir():
                self.found.leave_out(path, NO_FILE, 'a pipe or a device')

    def _is_left_out(
        self, path: Path, entry: os.DirEntry[str], ignored: Iterable[_Ignored]
    ) -> bool:
        """Whether a file or folder is left out; it is then noted with its reason."""
        is_folder = entry.is_dir(follow_symlinks=False)
        if not self._with_hidden and is_unwanted(entry.name, is_folder):
            self.found.leave_out(path, HIDDEN, 'hidden, a cache or a backup')
        elif entry.is_symlink() and not leads_somewhere(path):
            self.found.leave_out(path, BROKEN_LINK, 'a link to nothing')
        elif entry.is_symlink() and not path.resolve().is_relative_to(self._resolved_root):
            self.found.leave_out(path, LEAVING_LINK, 'a link that leaves the folder')
        elif any(patterns.has(path, is_folder) for patterns in ignored):
            self.found.leave_out(path, EXCLUDED, 'named by a .gitignore file')
        elif self._is_excluded(path, is_folder):
            self.found.leave_out(path, EXCLUDED, 'excluded by the patterns that were given')
        else:
            return False
        return True

    def _is_excluded(self, path: Path, is_folder: bool) -> bool:
        """Whether the user's patterns leave out a file or a folder."""
        name = path.relative_to(self._root).as_posix()
        excluded_name = f'{name}/' if is_folder else name
        if self._exclude is not None and self._exclude.match_file(excluded_name):
            return True
        return not is_folder and self._include is not None and not self._include.match_file(name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file, or a link to where this user may not look.

    The latter is then named as a file that cannot be read, and its documents stay.
    """
    try:
        return entry.is_file()
    except PermissionError:
        return True


def is_unwanted(name: str, is_folder: bool) -> bool:
    """Whether a file or folder is hidden, a cache or a backup, by its name."""
    if name.startswith('.'):
        return True
    if is_folder:
        return name in _CACHES
    return bool(_BACKUP.fullmatch(name)) or name.lower() in _SYSTEM_FILES


def checked_patterns(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Patterns of .gitignore. Raises InputError for a bad one, or one that takes too long."""
    from pathspec import GitIgnoreSpec

    lines = list(patterns)
    for line in lines:
        if line.replace('**', '').count('*') > _MOST_STARS:
            raise InputError(
                f'pattern {line[:60]!r} has more than {_MOST_STARS} stars: write a shorter one'
            )
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise InputError(f'{error}: write patterns as in a .gitignore file') from error


def _read_gitignore(folder: Path) -> list[_Ignored]:
    """What a folder's .gitignore file names; none without one."""
    path = folder / _GITIGNORE
    if path.is_symlink() or not path.is_file():
        return []
    lines = path.read_text(encoding='utf-8', errors='replace').splitlines()
    try:
        return [_Ignored(folder, checked_patterns(lines))]
    except InputError as error:
        raise InputError(f'{path}: {error}') from error

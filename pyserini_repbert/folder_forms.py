"""Which files this package writes into folders of a kind: only these are ever removed.

People keep their own files beside ours. So a folder is replaced only if it holds only files
of its form, and no link, since what a link leads to is not ours either.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension_words import missing_extension_of_file

# A temporary file or folder of NAME is called `.NAME.` with these digits: eight random ones, and
# eight of a digest of NAME and of the random ones.
_MARK = r'(?P<random>[0-9a-f]{8})(?P<digest>[0-9a-f]{8})\.unfinished'
# Earlier releases had other names.
TEMPORARY = r'([a-z0-9_]{8}|[0-9a-f]{16}\.unfinished)'
# What file managers and network file systems leave in any folder.
_OF_THE_SYSTEM = re.compile(r'\.DS_Store|Thumbs\.db|desktop\.ini|\.nfs[0-9a-f]{8,}')


@dataclass(frozen=True)
class FolderForm:
    """The files that this package writes into a folder of one kind.

    Attributes
    ----------
    what : the kind, for errors: 'Lucene index'
    files : regular expressions of the paths of files in the folder, with '/' between names; a
        folder's path ends with '/'
    """

    what: str
    files: tuple[str, ...]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile('|'.join(f'(?:{file})' for file in self.files))

    def below(self, folder: str) -> tuple[str, ...]:
        """The files of such a folder, by their names in the folder around it; `folder` is the
        regular expression of its name.
        """
        return (f'{folder}/', *(f'{folder}/(?:{file})' for file in self.files))

    def foreign_entry(self, folder: Path) -> str | None:
        """The path in `folder` of the first entry that this package does not write; None if there
        is none.

        It is a file or a folder of another name, or a link, whatever its name.
        """
        for entry in _entries_below(folder):
            name = _name_below(folder, entry)
            if not self._is_own(entry, name):
                return name
        return None

    def check(self, folder: Path) -> None:
        """Raise InputError if `folder` holds an entry that this package does not write."""
        name = self.foreign_entry(folder)
        if name is None:
            return
        kind = 'the link ' if (folder / name).is_symlink() else ''
        raise InputError(
            f'{folder} holds {kind}{name}, which no {self.what} has: move it away, or give another '
            f'folder{missing_extension_of_file(name)}'
        )

    def remove(self, folder: Path) -> None:
        """Remove the files of this form, and the folders that are empty then.

        What else is there stays; so does everything where `folder` is a link.
        """
        if folder.is_symlink() or not folder.is_dir():
            return
        folders = [folder]
        for entry in _entries_below(folder):
            name = _name_below(folder, entry)
            if not self._is_own(entry, name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry))
            else:
                with suppress(OSError):
                    os.unlink(entry)
        for path in reversed(folders):
            with suppress(OSError):
                path.rmdir()

    def _is_own(self, entry: os.DirEntry[str], name: str) -> bool:
        if entry.is_dir(follow_symlinks=False):
            return bool(self._pattern.fullmatch(f'{name}/'))
        is_file = entry.is_file(follow_symlinks=False)
        is_known = self._pattern.fullmatch(name) or _OF_THE_SYSTEM.fullmatch(entry.name)
        return is_file and bool(is_known)


def _name_below(folder: Path, entry: os.DirEntry[str]) -> str:
    """The path of an entry in a folder, with '/' between names."""
    # pathlib takes ten times as long, and a collection has hundreds of files.
    return entry.path.removeprefix(os.path.join(folder, '')).replace(os.sep, '/')


def temporary_name(name: str) -> str:
    """A new name for a temporary file or folder of `name`, which `is_temporary` knows again."""
    digits = secrets.token_hex(4)
    return f'.{name}.{digits}{_digest(name, digits)}.unfinished'


def is_temporary(entry: str, name: str) -> bool:
    """Whether the name `entry` is one that `temporary_name` gave to something of `name`.

    A name that someone else chose has another digest.
    """
    match = re.fullmatch(rf'\.{re.escape(name)}\.{_MARK}', entry)
    return match is not None and match['digest'] == _digest(name, match['random'])


def _digest(name: str, digits: str) -> str:
    content = f'pyserini_repbert {digits} {name}'
    return hashlib.sha256(content.encode('utf-8', 'surrogateescape')).hexdigest()[:8]


def refuse_link(path: Path) -> None:
    """Raise InputError for a link in a folder that is written, because its target is not ours."""
    if path.is_symlink():
        raise InputError(
            f'{path} is a link, and what it leads to is not written: put the folder or the file '
            'itself there'
        )


def _entries_below(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All entries of a folder and of the folders in it, in order; no link is followed.

    Those that another process removes meanwhile are passed over.
    """
    entries: list[os.DirEntry[str]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as listed:
        entries += listed
    for entry in sorted(entries, key=lambda entry: entry.name):
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries_below(Path(entry))

"""The files of a corpus that are not read: each with its reason, and all in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BROKEN = 'that cannot be read'
_EMPTY = 'without text'


class UnreadableFile(ValueError):
    """A file that its reader cannot read: the message is the reason.

    Parameters
    ----------
    reason : why, in words
    group : how such files are counted behind their suffix: 'without records'; default: 'that
        cannot be read'
    """

    def __init__(self, reason: str, group: str = BROKEN) -> None:
        super().__init__(reason)
        self.group = group


NO_READER = ''


def has_no_reader(error: UnreadableFile) -> bool:
    """Whether a file is not read only because of its suffix."""
    return error.group == NO_READER


def is_broken(error: UnreadableFile) -> bool:
    """Whether the reader of a file failed, so that somebody has to look at it."""
    return error.group == BROKEN


def without_text(reason: str = 'it has no text') -> UnreadableFile:
    """The error for a file that has no text."""
    return UnreadableFile(reason, _EMPTY)


@dataclass(frozen=True)
class FileGroup:
    """Files that are counted together.

    Attributes
    ----------
    one : what one of them is called
    many : what several are called
    """

    one: str
    many: str

    @classmethod
    def of_suffix(cls, path: Path, besides: str = '') -> FileGroup:
        """The group of a file's suffix.

        `besides` is a word about its files: '.pdf that cannot be read'.
        """
        suffix = suffix_of(path)
        if not suffix:
            besides = f'without suffix {besides}'.strip()
            return cls(f'file {besides}', f'files {besides}')
        name = f'{suffix} {besides}'.strip()
        return cls(name, name)


def suffix_of(path: Path) -> str:
    """A file's suffix in small letters; a packed file's suffix with .gz: '.tar.gz'."""
    suffixes = path.suffixes[-2:] if path.suffix.lower() == '.gz' else path.suffixes[-1:]
    return ''.join(suffixes).lower()


HIDDEN = FileGroup('hidden file, cache or backup', 'hidden files, caches and backups')
EXCLUDED = FileGroup('excluded file', 'excluded files')
LEAVING_LINK = FileGroup('link that leaves the folder', 'links that leave the folder')
BROKEN_LINK = FileGroup('link to nothing', 'links to nothing')
NO_FILE = FileGroup('pipe or device', 'pipes and devices')
READMES = FileGroup('README about the other files', 'READMEs about the other files')
# The counts after the files that a reader might have read.
_LAST = (READMES, HIDDEN, EXCLUDED, NO_FILE, BROKEN_LINK, LEAVING_LINK)


@dataclass(frozen=True)
class UnreadFile:
    """A file that is not read, or a folder with all that is in it.

    Attributes
    ----------
    path : of the file
    group : with which it is counted
    reason : why it is not read
    docid : of its documents, if it was read before; '' if it has none
    is_broken : whether its reader failed: somebody has to look at it
    is_empty : whether it was read, and has no text
    """

    path: Path
    group: FileGroup
    reason: str
    docid: str = ''
    is_broken: bool = False
    is_empty: bool = False

    @classmethod
    def of_error(cls, path: Path, docid: str, error: UnreadableFile) -> UnreadFile:
        """A file that cannot be read."""
        group = FileGroup.of_suffix(path, error.group)
        is_empty = error.group == _EMPTY
        return cls(path, group, str(error), docid, is_broken(error), is_empty)


class UnreadFiles:
    """Files that are not read.

    Parameters
    ----------
    files : each with its reason
    """

    def __init__(self, files: Iterable[UnreadFile] = ()) -> None:
        self._files = sorted(files, key=lambda file: file.path)

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[UnreadFile]:
        return iter(self._files)

    @property
    def broken(self) -> list[UnreadFile]:
        """The files whose reader failed."""
        return [file for file in self._files if file.is_broken]

    def __str__(self) -> str:
        """'not read: 3 .pdf, 1 .zip, 2 links that leave the folder'; '' for none."""
        if not self._files:
            return ''
        counts = Counter(file.group for file in self._files)
        groups = sorted(counts, key=_order_of)
        return f'not read: {", ".join(_counted(counts[group], group) for group in groups)}'


def _order_of(group: FileGroup) -> tuple[int, str]:
    """The position of a group in the line."""
    place = _LAST.index(group) if group in _LAST else -1
    return place, group.one


def _counted(count: int, group: FileGroup) -> str:
    return f'{count:,} {group.one if count == 1 else group.many}'

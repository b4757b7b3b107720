"""Records of the files of a corpus, so that unchanged files need not be opened.

A file is unchanged if its size, its times and its inode are as before. If they differ, a digest of
its content decides. Times say nothing about a file that was changed just before it was read: it may
change once more within one step of the clock. For such a file, the digest decides, too.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyserini_repbert.data.unread_files import UnreadableFile

# Nanoseconds: the coarsest clock of a file system, which FAT has.
_CLOCK_STEP = 2_000_000_000
_DIGEST_BYTES = 16
_LARGEST = 2**63 - 1  # SQLite's largest number


@dataclass(frozen=True)
class FileState:
    """What the file system says of a file.

    Attributes
    ----------
    size : in bytes
    modified, changed : when its content, and anything about it, last changed, in nanoseconds
    inode : its number on the disk
    """

    size: int
    modified: int
    changed: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """The state of a file. Raises OSError for an unknown one."""
        stat = path.stat()
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino & _LARGEST)


@dataclass(frozen=True)
class FileContent:
    """A file as it was at one moment.

    Attributes
    ----------
    state : what the file system said
    is_settled : whether a later change would show in the file's times
    digest : of its bytes
    """

    state: FileState
    is_settled: bool
    digest: bytes


def look_at(path: Path) -> FileContent | None:
    """The content of a file; None for one that changes meanwhile.

    Raises OSError for one that cannot be read.
    """
    now = time.time_ns()
    state = FileState.of(path)
    with path.open('rb') as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES))
    if FileState.of(path) != state:
        return None
    is_settled = max(state.modified, state.changed) + _CLOCK_STEP < now
    return FileContent(state, is_settled, digest.digest())


@dataclass(frozen=True)
class FileRecord:
    """A file that was read, and its documents.

    Attributes
    ----------
    content : when it was read
    way : how it was read: by which reader, with which settings
    docid : of the file
    documents : how many it has
    problem : why it has none, such as a scan without text; None if it was read
    """

    content: FileContent
    way: str
    docid: str
    documents: int
    problem: UnreadableFile | None = None


class FileRecords:
    """The records of a corpus's files, by their paths in the corpus.

    Parameters
    ----------
    known : of files that were read before
    docids_of : gives the docids of the documents that files have, by their paths in the corpus
    checksum : look at the content of all files

    Attributes
    ----------
    known : as given
    current : of the present files: the unchanged ones, and those that were read
    unchanged : the paths of the unchanged ones
    """

    def __init__(
        self,
        known: Mapping[str, FileRecord],
        docids_of: Callable[[set[str]], Iterable[str]],
        checksum: bool = False,
    ) -> None:
        self.known = known
        self.current: dict[str, FileRecord] = {}
        self.unchanged: set[str] = set()
        self._docids_of = docids_of
        self._checksum = checksum

    def find_unchanged(self, name: str, path: Path, *, way: str, docid: str) -> FileRecord | None:
        """The record of a file that needs not be read again; None for others.

        Parameters
        ----------
        name : its path in the corpus
        path : where it is
        way, docid : as in `FileRecord`
        """
        known = self.known.get(name)
        if known is None or known.way != way or known.docid != docid:
            return None
        try:
            content = self._same_content(known.content, path)
        except OSError:
            # Its reader reports the error.
            return None
        if content is None:
            return None
        record = replace(known, content=content)
        self.current[name] = record
        self.unchanged.add(name)
        return record

    def way_before(self, name: str, path: Path) -> str:
        """How a file was read that is as it was, by its times; '' for others.

        Parameters
        ----------
        name : its path in the corpus
        path : where it is
        """
        known = self.known.get(name)
        if known is None or self._checksum or not known.content.is_settled:
            return ''
        try:
            is_unchanged = FileState.of(path) == known.content.state
        except OSError:
            return ''
        return known.way if is_unchanged else ''

    def _same_content(self, known: FileContent, path: Path) -> FileContent | None:
        """The content of a file that is as it was before; None if it differs."""
        state = FileState.of(path)
        if state == known.state and known.is_settled and not self._checksum:
            return known
        if state.size != known.state.size:
            return None
        content = look_at(path)
        if content is None or content.digest != known.digest:
            return None
        return content

    def docids_of_unchanged(self) -> Iterable[str]:
        """The docids of the documents of unchanged files."""
        return self._docids_of(self.unchanged)

    def add(self, name: str, path: Path, record: FileRecord) -> None:
        """Remember a file that was read, if it has not changed meanwhile.

        Parameters
        ----------
        name : its path in the corpus
        path : where it is
        record : with the content at which was looked before it was read
        """
        try:
            state = FileState.of(path)
        except OSError:
            return
        if state == record.content.state:
            self.current[name] = record

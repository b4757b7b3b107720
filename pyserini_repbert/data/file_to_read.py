"""A file of a corpus, and its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.data.corpus_formats import docid_of_path
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import BYTE_ORDER_MARK, human_size, open_binary

MOST_BYTES = 64 << 20  # of a file that is read as a whole
_UTF_16 = re.compile(rb'\xff\xfe|\xfe\xff')


@dataclass(frozen=True)
class FileToRead:
    """A file of a corpus.

    Attributes
    ----------
    path : where it is
    docid : of the file: its path in the corpus
    fields : the columns of a table, or keys of a record, that are its text; empty: the usual ones
    is_alone : whether the file is the whole corpus
    """

    path: Path
    docid: str
    fields: tuple[str, ...] = ()
    is_alone: bool = False

    def docid_of(self, identifier: str) -> str:
        """The docid of one of the file's documents.

        In a folder, it begins with the file's: two tables may have the same identifiers.
        """
        written = docid_of_path(identifier)
        return written if self.is_alone else f'{self.docid}#{written}'

    def numbered_docid(self, number: int) -> str:
        """The docid of a document that has no identifier, by its number from 1."""
        return f'{self.docid}#{number}'


def read_bytes(path: Path) -> bytes:
    """A whole file, unpacked if its name ends in .gz.

    Raises UnreadableFile for one that is too large, or damaged.
    """
    try:
        with open_binary(path) as stream:
            raw = stream.read(MOST_BYTES + 1)
    except InputError as error:
        raise UnreadableFile(str(error)) from error
    except OSError as error:
        raise UnreadableFile(str(error.strerror)) from error
    if len(raw) > MOST_BYTES:
        raise UnreadableFile(f'larger than {human_size(MOST_BYTES)}: split it')
    return raw


def read_text(path: Path) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark; line ends are LF.

    Raises UnreadableFile for other bytes, and for a file that is too large.
    """
    raw = read_bytes(path)
    try:
        if _UTF_16.match(raw):
            text = raw.decode('utf-16')
        else:
            text = raw.removeprefix(BYTE_ORDER_MARK).decode('utf-8')
    except UnicodeDecodeError as error:
        raise UnreadableFile(f'not valid UTF-8 ({error.reason}): save it as UTF-8') from error
    if '\0' in text:
        raise UnreadableFile('no text: it has bytes that are zero')
    return text.replace('\r\n', '\n').replace('\r', '\n')

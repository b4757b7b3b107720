"""A file of a corpus, and its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pyserini_repbert.data.origins import docid_of_path
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import human_size, open_binary

MOST_BYTES = 64 << 20  # of a file that is read as a whole


@dataclass(frozen=True)
class FileToRead:
    """A file of a corpus.

    Attributes
    ----------
    path : of the file
    docid : of the file: its path in the corpus
    fields : the columns of a table, or keys of a record, that are its text; empty: the usual ones
    is_alone : whether the file is the whole corpus
    encodings : gets the encoding of a file that is not in Unicode
    title_column : of a table, that is the title of its rows; '': as the table says
    answers_another : of a mail: whether the corpus has the mail that it answers
    """

    path: Path
    docid: str
    fields: tuple[str, ...] = ()
    is_alone: bool = False
    encodings: dict[Path, str] = field(default_factory=dict, compare=False)
    title_column: str = ''
    answers_another: bool = False

    def note_encoding(self, encoding: str) -> None:
        """Note in which encoding the file is; '' for Unicode, the expected encoding."""
        if encoding:
            self.encodings[self.path] = encoding
        else:
            self.encodings.pop(self.path, None)

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


def read_text(file: FileToRead) -> str:
    """The text of a file, whose line ends are LF; its encoding is noted if it had to be detected.

    Raises UnreadableFile for a file that is not text, or is too large.
    """
    decoded = decode_text(read_bytes(file.path))
    file.note_encoding(decoded.encoding)
    return decoded.text.replace('\r\n', '\n').replace('\r', '\n')

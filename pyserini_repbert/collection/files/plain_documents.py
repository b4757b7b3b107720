"""reStructuredText, AsciiDoc, Org and source files as documents: what a person reads of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from pyserini_repbert.collection.files.asciidoc_text import read_asciidoc
from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.org_text import read_org
from pyserini_repbert.collection.files.read_page import ReadPage, titled_text
from pyserini_repbert.collection.files.restructured_text import read_restructured
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import LineStart, Origin
from pyserini_repbert.data.suffixes import MARKED_UP, without_suffix
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import without_text
from pyserini_repbert.files import human_size, open_binary

_MOST_LOG = 4_000_000  # bytes of a log that are read
logger = logging.getLogger(__name__)


def restructured_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a reStructuredText file. As in Sphinx, its first heading is its title."""
    page = read_restructured(read_text(file).split('\n'))
    if page.headings:
        page.title = page.headings[0].title
    yield _document_of_page(file, page)


def asciidoc_documents(file: FileToRead) -> Iterator[Document]:
    """The document of an AsciiDoc file."""
    yield _document_of_page(file, read_asciidoc(read_text(file).split('\n')))


def org_documents(file: FileToRead) -> Iterator[Document]:
    """The document of an Org file."""
    yield _document_of_page(file, read_org(read_text(file).split('\n')))


def source_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a program, a script or settings: its path is the title."""
    text = read_text(file)
    stripped = text.strip('\n')
    if not stripped.strip():
        raise without_text()
    first = 1 + len(text) - len(text.lstrip('\n'))
    origin = Origin(lines=(LineStart(0, first),))
    yield Document(file.docid, stripped, file.docid, origin=origin)


def log_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a log: its path is the title.

    If it is long, only its last lines are read, and the first line says what is left out.
    """
    left_out = 0
    n_lines = 0
    raw = b''
    with open_binary(file.path) as stream:
        while block := stream.read(_MOST_LOG):
            raw += block
            if len(raw) > _MOST_LOG:
                begin = raw.find(b'\n', len(raw) - _MOST_LOG) + 1
                left_out += begin
                n_lines += raw.count(b'\n', 0, begin)
                raw = raw[begin:]
    decoded = decode_text(raw)
    file.note_encoding(decoded.encoding)
    text = decoded.text.replace('\r\n', '\n').strip('\n')
    origin = Origin(lines=(LineStart(0, n_lines + 1),))
    if left_out:
        note = f'({human_size(left_out)} of older lines are left out.)'
        logger.warning('%s: %s of older lines are left out', file.path, human_size(left_out))
        text = f'{note}\n{text}'
        origin = Origin(lines=(LineStart(0, n_lines), LineStart(len(note) + 1, n_lines + 1)))
    yield Document(file.docid, text, file.docid, origin=origin)


def _document_of_page(file: FileToRead, page: ReadPage) -> Document:
    """The document of a file. Raises UnreadableFile for one without words."""
    if not page.lines and not page.title:
        raise without_text()
    titled = titled_text(page, without_suffix(file.path.name, MARKED_UP))
    placed = titled.placed
    return Document(file.docid, placed.text, titled.title, origin=placed.origin)

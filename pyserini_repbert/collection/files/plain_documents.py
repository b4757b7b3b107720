"""reStructuredText, AsciiDoc, Org and source files as documents: what a person reads of them."""

from __future__ import annotations

from collections.abc import Iterator

from pyserini_repbert.collection.files.asciidoc_text import read_asciidoc
from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.org_text import read_org
from pyserini_repbert.collection.files.read_page import ReadPage, titled_text
from pyserini_repbert.collection.files.restructured_text import read_restructured
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import LineStart, Origin
from pyserini_repbert.data.suffixes import MARKED_UP, without_suffix
from pyserini_repbert.data.unread_files import without_text


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


def _document_of_page(file: FileToRead, page: ReadPage) -> Document:
    """The document of a file. Raises UnreadableFile for one without words."""
    if not page.lines and not page.title:
        raise without_text()
    titled = titled_text(page, without_suffix(file.path.name, MARKED_UP))
    placed = titled.placed
    return Document(file.docid, placed.text, titled.title, origin=placed.origin)

"""reStructuredText, AsciiDoc, Org and source files as documents: their text, with a title.

Each has a title by the rules of its format. Its line is then left out of the text. Other
headings stay in the text, and are known by their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_to_read import FileToRead, read_text
from pyserini_repbert.data.origins import (
    Heading,
    LineStart,
    Origin,
    positions_of_rows,
    text_of_rows,
)
from pyserini_repbert.data.plain_headings import (
    RowHeading,
    asciidoc_headings,
    is_rst_line,
    line_of,
    org_headings,
    restructured_headings,
)
from pyserini_repbert.data.unread_files import without_text

# Markup that may stand before the title: directives and comments, targets, substitutions, roles.
_RST_MARKUP = re.compile(r'\.\.(?:[ \t]|$)')
_RST_FIELD = re.compile(r':[^:\s][^:]*:(?:[ \t]|$)')
_ASCIIDOC_TITLE = re.compile(r'[=#][ \t]+(\S.*)')
_ASCIIDOC_ATTRIBUTE = re.compile(r':!?[\w-]+!?:')
_ORG_TITLE = re.compile(r'#\+title:[ \t]*(.*)', re.IGNORECASE)
_ORG_HEADING = re.compile(r'\*[ \t]+(\S.*)')
_ORG_KEYWORD = re.compile(r'#(?:\+|[ \t]|$)')


def restructured_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a reStructuredText file.

    The first heading is its title: a line that is underlined, and may be overlined, at least as
    long as it is.
    """
    lines = read_text(file).split('\n')
    headings = restructured_headings(lines)
    row = _first_rst_content(lines)
    for start in (row, row + 1):
        title = line_of(lines, start).strip()
        is_overlined = start > row and is_rst_line(lines, row, title)
        if title and is_rst_line(lines, start + 1, title) and (start == row or is_overlined):
            yield _document(file, lines, headings, title, row, start + 2)
            return
    yield _document(file, lines, headings)


def _first_rst_content(lines: Sequence[str]) -> int:
    """The row of the first line that is no markup, nor within it."""
    for row, line in enumerate(lines):
        is_within = line[:1].isspace()
        if line.strip() and not is_within and not _is_rst_markup(line):
            return row
    return len(lines)


def _is_rst_markup(line: str) -> bool:
    return bool(_RST_MARKUP.match(line) or _RST_FIELD.match(line))


def asciidoc_documents(file: FileToRead) -> Iterator[Document]:
    """The document of an AsciiDoc file; '= Title' may follow comments and attributes."""
    lines = read_text(file).split('\n')
    headings = asciidoc_headings(lines)
    for row, line in enumerate(lines):
        match = _ASCIIDOC_TITLE.fullmatch(line)
        if match:
            yield _document(file, lines, headings, match[1], row, row + 1)
            return
        is_before = line.startswith('//') or _ASCIIDOC_ATTRIBUTE.match(line)
        if line.strip() and not is_before:
            break
    yield _document(file, lines, headings)


def org_documents(file: FileToRead) -> Iterator[Document]:
    """The document of an Org file: `#+TITLE:`, else a heading before any text."""
    lines = read_text(file).split('\n')
    headings = org_headings(lines)
    for row, line in enumerate(lines):
        match = _ORG_TITLE.fullmatch(line)
        if match and match[1].strip():
            yield _document(file, lines, headings, match[1], row, row + 1)
            return
    for row, line in enumerate(lines):
        match = _ORG_HEADING.fullmatch(line)
        if match:
            yield _document(file, lines, headings, match[1], row, row + 1)
            return
        if line.strip() and not _ORG_KEYWORD.match(line):
            break
    yield _document(file, lines, headings)


def source_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a program, a script or settings: its path is the title."""
    text = read_text(file)
    stripped = text.strip('\n')
    if not stripped.strip():
        raise without_text()
    first = 1 + len(text) - len(text.lstrip('\n'))
    origin = Origin(lines=(LineStart(0, first),))
    yield Document(file.docid, stripped, file.docid, origin=origin)


def _document(
    file: FileToRead,
    lines: Sequence[str],
    headings: Sequence[RowHeading],
    title: str = '',
    start: int = 0,
    end: int = 0,
) -> Document:
    """A document without the lines of its title.

    Parameters
    ----------
    file : which it is
    lines : of the file
    headings : of the file; that of the title is left out
    title : '' for none
    start, end : the rows of the title, from 0; `end` is the first one behind it
    """
    placed = text_of_rows(lines, start, end)
    positions = positions_of_rows(lines, start, end)
    kept = [
        Heading(positions[heading.row], heading.level, heading.title, heading.anchor)
        for heading in headings
        if heading.row in positions
    ]
    origin = replace(placed.origin, headings=tuple(kept))
    return Document(file.docid, placed.text, ' '.join(title.split()), origin=origin)

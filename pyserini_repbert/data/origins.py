"""A document's location in its source: the file, the headings above, the line."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pyserini_repbert.data.suffixes import PAGES, without_suffix


class Heading(NamedTuple):
    """A heading within a document's text.

    Attributes
    ----------
    start : the character of the text at which it begins
    level : from 1, the highest
    title : its words
    anchor : its address within the page; '' if it has none
    """

    start: int
    level: int
    title: str
    anchor: str


class LineStart(NamedTuple):
    """A character of a text that begins a line, and that line's number in the file, from 1."""

    start: int
    line: int


class PageStart(NamedTuple):
    """A character of a text that begins a printed page, and that page's number, from 1."""

    start: int
    page: int


class TextSpan(NamedTuple):
    """The characters `text[start:end]` of a text."""

    start: int
    end: int


@dataclass(frozen=True)
class Origin:
    """A document's location in its source.

    Attributes
    ----------
    file : its path in the corpus; '' for anything but a file
    headings : those within its text, in their order
    lines : where lines of the text are in the file; the lines after one of these follow each other
        there, too. Empty if the format has no lines, or the text is a record's
    record : the line at which its record begins, such as a row of a table; 0 if it is not a record,
        or has no line
    code : the lines of the text that are code, in their order
    row : the number of the record, from 1, in a file of records that has no lines; 0 for others
    pages : where printed pages begin in the text, by their numbers from 1; those without text are
        left out
    """

    file: str = ''
    headings: tuple[Heading, ...] = ()
    lines: tuple[LineStart, ...] = ()
    record: int = 0
    row: int = 0
    code: tuple[TextSpan, ...] = ()
    pages: tuple[PageStart, ...] = ()

    def rendered(self) -> str:
        """What a collection stores beside the file, as JSON."""
        outline: dict[str, object] = {}
        if self.headings:
            outline['headings'] = self.headings
        if self.lines:
            outline['lines'] = self.lines
        if self.record:
            outline['record'] = self.record
        if self.row:
            outline['row'] = self.row
        if self.code:
            outline['code'] = self.code
        if self.pages:
            outline['pages'] = self.pages
        return json.dumps(outline, ensure_ascii=False)

    @classmethod
    def parsed(cls, file: str, outline: str) -> Origin:
        """The origin that a collection stores. Raises ValueError for anything else."""
        try:
            values = json.loads(outline)
            headings = [Heading(*heading) for heading in values.get('headings', ())]
            lines = [LineStart(*line) for line in values.get('lines', ())]
            record = int(values.get('record', 0))
            row = int(values.get('row', 0))
            code = [TextSpan(*span) for span in values.get('code', ())]
            pages = [PageStart(*page) for page in values.get('pages', ())]
        except (TypeError, AttributeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        return cls(file, tuple(headings), tuple(lines), record, row, tuple(code), tuple(pages))

    def headings_at(self, position: int) -> tuple[Heading, ...]:
        """The headings above a character of the text, the highest first."""
        path: list[Heading] = []
        for heading in self.headings:
            if heading.start > position:
                break
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
        return tuple(path)

    def anchor_at(self, position: int) -> str:
        """The address of a character of the text within its page, as a browser takes it.

        That is the anchor of the last heading above, or 'page=3' of a printed page; '' for neither.
        """
        headings = self.headings_at(position)
        if headings:
            return headings[-1].anchor
        page = self.page_at(position)
        return '' if page is None else f'page={page}'

    def page_at(self, position: int) -> int | None:
        """The printed page on which a character of the text stands; None without pages."""
        number = bisect_right(self.pages, position, key=attrgetter('start'))
        return self.pages[number - 1].page if number else None

    def parts(self, start: int, end: int) -> list[TextSpan]:
        """The parts into which headings, and ends of printed pages, cut `text[start:end]`."""
        begins = {heading.start for heading in self.headings}
        begins.update(page.start for page in self.pages)
        starts = [start, *sorted(own for own in begins if start < own < end)]
        ends = [*starts[1:], end]
        return [TextSpan(*span) for span in zip(starts, ends, strict=True)]

    def code_within(self, start: int, end: int) -> list[TextSpan]:
        """The parts of `text[start:end]` that are code."""
        first = bisect_right(self.code, start, key=attrgetter('end'))
        parts = []
        for span in self.code[first:]:
            if span.start >= end:
                break
            parts.append(TextSpan(max(span.start, start), min(span.end, end)))
        return parts

    def line_at(self, text: str, position: int) -> int | None:
        """The line of the file that has a character of the text; None without lines."""
        if self.record:
            return self.record
        row = bisect_right(self.lines, position, key=attrgetter('start')) - 1
        if row < 0:
            return None
        before = self.lines[row]
        return before.line + text.count('\n', before.start, position)


@dataclass(frozen=True)
class PlacedText:
    """Text, and the locations of its parts in the file."""

    text: str
    origin: Origin


def text_of_rows(lines: Sequence[str], start: int = 0, end: int = 0, first: int = 1) -> PlacedText:
    """The text of a file's lines without some of them, and without white space around it.

    Parameters
    ----------
    lines : of the file, without their ends
    start, end : the rows that are left out, from 0; `end` is the first one behind them
    first : the number of the first line in the file
    """
    rows = _rows_of_text(lines, start, end)
    text = '\n'.join(lines[row] for row in rows).strip()
    if not text:
        return PlacedText('', Origin())
    places = [LineStart(0, first + rows[0])]
    if rows[0] < start and rows[-1] >= end:
        before = sum(len(lines[row]) + 1 for row in rows if row < start)
        n_removed = len(lines[rows[0]]) - len(lines[rows[0]].lstrip())
        if before - n_removed < len(text):
            places.append(LineStart(before - n_removed, first + end))
    return PlacedText(text, Origin(lines=tuple(places)))


def _rows_of_text(lines: Sequence[str], start: int, end: int) -> list[int]:
    """The rows without those from `start` to before `end`, and without empty ones in front."""
    rows = [row for row in range(len(lines)) if not start <= row < end]
    first = 0
    while first < len(rows) and not lines[rows[first]].strip():
        first += 1
    return rows[first:]


def name_in_corpus(corpus: str, path: Path) -> str:
    """The path of a file in a folder, with slashes; of a file that is the corpus, its name.

    Bytes that are not UTF-8 are replaced.
    """
    folder = Path(corpus)
    name = path.name if path == folder else path.relative_to(folder).as_posix()
    return os.fsencode(name).decode('utf-8', 'replace')


def readable_docid(docid: str) -> str:
    """A docid as a person reads it: with unescaped spaces and % in a file's docid.

    `docid_of_path` gives the docid back.
    """
    text = docid.replace('%20', ' ').replace('%25', '%')
    return text if docid_of_path(text) == docid else docid


def stored_docid(docid: str, holds: Callable[[str], bool]) -> str:
    """The stored docid that a person means, who may type it as stored or as shown.

    Parameters
    ----------
    docid : what was typed
    holds : whether there is a document of a stored docid
    """
    typed = possible_docids(docid)
    if len(typed) == 1:
        return docid
    return next((possible for possible in typed if holds(possible)), docid)


def possible_docids(docid: str) -> list[str]:
    """The stored docids that a person may mean by a docid or the path of a file.

    A page's docid is stored without the suffix.
    """
    path = docid_of_path(docid)
    return list(dict.fromkeys([docid, path, without_suffix(path, PAGES)]))


def docid_of_path(path: str) -> str:
    """A docid that is a path; white space and % in it are written as in addresses."""
    return re.sub(r'[\s%]', lambda match: quote(match[0]), path)

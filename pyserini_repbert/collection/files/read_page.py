"""The text read from a page: its lines, each with its line in the file, and its headings.

Blocks come one after the other, an empty line between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyserini_repbert.data.origins import (
    Heading,
    LineStart,
    Origin,
    PageStart,
    PlacedText,
    TextSpan,
)

BULLET = '- '
CELL_END = '\t'
INDENT = '  '  # of a list within a list


@dataclass(frozen=True)
class PageHeading:
    """A heading of a page.

    Attributes
    ----------
    level : from 1, the highest
    title : its words, on one line
    anchor : its address within the rendered page; '' if only the renderer knows it
    row : of the page's lines
    is_first : whether nothing but code is read before it
    """

    level: int
    title: str
    anchor: str
    row: int
    is_first: bool


@dataclass
class ReadPage:
    """The text read from a page.

    Attributes
    ----------
    lines : of the text
    numbers : the line of the file, from 1, of each of them; 0 for an empty line between blocks
    headings : in their order
    code_rows : of the lines that are code
    pages : the printed pages by the row with which each begins
    title : that the file states apart from its headings; '' for none
    has_prose : whether anything but code is read
    """

    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    headings: list[PageHeading] = field(default_factory=list)
    code_rows: set[int] = field(default_factory=set)
    pages: dict[int, int] = field(default_factory=dict)
    title: str = ''
    has_prose: bool = False

    def add_block(
        self,
        lines: Sequence[str],
        number: int,
        *,
        indent: str = '',
        mark: str = '',
        is_tight: bool = False,
        is_code: bool = False,
    ) -> bool:
        """Add the lines of a block. Returns whether any of them has words.

        Parameters
        ----------
        lines : of the block; empty ones around it are left out
        number : of the first line in the file
        indent : in front of each line
        mark : in front of the first line: the mark of a list's item
        is_tight : whether there is no empty line before the block
        is_code : whether spaces in front of a line are kept
        """
        numbered = _numbered_lines(lines, number, is_code=is_code)
        if not numbered:
            return False
        self.has_prose = self.has_prose or not is_code
        if self.lines and not is_tight:
            self.lines.append('')
            self.numbers.append(0)
        if is_code:
            self.code_rows.update(range(len(self.lines), len(self.lines) + len(numbered)))
        for line, line_number in numbered:
            self.lines.append(f'{indent}{mark}{line}')
            self.numbers.append(line_number)
            mark = ''
        return True

    def add_row(self, cells: Iterable[str], number: int, *, is_tight: bool = True) -> None:
        """Add a row of a table, on one line. Empty cells stay, so that columns do, but the last."""
        words = [' '.join(cell.split()) for cell in cells]
        while words and not words[-1]:
            words.pop()
        n_empty = next((column for column, word in enumerate(words) if word), 0)
        row = CELL_END.join(words[n_empty:])
        # White space around a block is not part of it: before the block, it is the indent.
        self.add_block([row], number, indent=CELL_END * n_empty, is_tight=is_tight)

    def add_heading(self, level: int, title: str, anchor: str, number: int) -> None:
        """Add a heading with a title that is not empty.

        Parameters
        ----------
        level : 1 for the highest
        title : without marks
        anchor : how an address names the heading, or ''
        number : of the line of the file in which the heading begins, from 1
        """
        is_first = not self.has_prose
        self.add_block([title], number)
        row = len(self.lines) - 1
        self.headings.append(PageHeading(level, title, anchor, row, is_first))


def _numbered_lines(lines: Sequence[str], number: int, *, is_code: bool) -> list[tuple[str, int]]:
    """The words of a block's lines, and their numbers, without empty lines around them.

    Parameters
    ----------
    lines : of the block
    number : of the first line in the file
    is_code : whether spaces in front of a line are kept
    """
    numbered: list[tuple[str, int]] = []
    n_filled = 0
    for offset, line in enumerate(lines):
        words = line.rstrip() if is_code else line.strip()
        if words or numbered:
            numbered.append((words, number + offset))
        if words:
            n_filled = len(numbered)
    return numbered[:n_filled]


@dataclass(frozen=True)
class TitledText:
    """The text of a page, and its title."""

    title: str
    placed: PlacedText


def titled_text(page: ReadPage, name: str) -> TitledText:
    """The text of a page without its title.

    The title is the one that the page states, otherwise the first heading, if there is no prose
    before it. A heading that is the title is left out of the text. A page without either is called
    `name`.
    """
    heading = page.headings[0] if page.headings else None
    if heading is None or not heading.is_first or page.title not in ('', heading.title):
        return TitledText(page.title or name, place_text(page))
    return TitledText(heading.title, place_text(page, without=heading))


def place_text(page: ReadPage, without: PageHeading | None = None) -> PlacedText:
    """The text of a page, and where its parts are.

    `without` is a heading that is left out of the text: the document's title.
    """
    left_out = -1 if without is None else without.row
    starts: dict[int, int] = {}
    shown: list[str] = []
    lines: list[LineStart] = []
    code: list[TextSpan] = []
    position = 0
    expected = 0
    for row, line in enumerate(page.lines):
        is_blank = page.numbers[row] == 0
        if row == left_out or (is_blank and (not shown or not shown[-1])):
            continue
        number = page.numbers[row]
        if not is_blank and number != expected:
            lines.append(LineStart(position, number))
            expected = number
        starts[row] = position
        if row in page.code_rows:
            goes_on = row - 1 in page.code_rows
            begin = code.pop().start if goes_on else position
            code.append(TextSpan(begin, position + len(line)))
        shown.append(line)
        position += len(line) + 1
        expected += 1
    text = '\n'.join(shown).rstrip()
    origin = Origin(
        '',
        _headings_of(page, starts),
        tuple(lines),
        code=tuple(code),
        pages=_pages_of(page, starts),
    )
    return PlacedText(text, origin)


def _headings_of(page: ReadPage, starts: Mapping[int, int]) -> tuple[Heading, ...]:
    """The headings of a page by their characters; `starts` are those of its rows in the text."""
    headings = []
    for heading in page.headings:
        start = starts.get(heading.row)
        if start is not None:
            headings.append(Heading(start, heading.level, heading.title, heading.anchor))
    return tuple(headings)


def _pages_of(page: ReadPage, starts: Mapping[int, int]) -> tuple[PageStart, ...]:
    """Where printed pages begin; `starts` are the characters of rows in the text."""
    pages = [PageStart(starts[row], number) for row, number in page.pages.items() if row in starts]
    return tuple(pages)

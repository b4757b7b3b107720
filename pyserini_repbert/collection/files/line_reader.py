"""Reads marked-up text line by line: the base of the readers of reStructuredText, AsciiDoc, Org."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pyserini_repbert.collection.files.read_page import INDENT, ReadPage
from pyserini_repbert.data.markup import visible_text

# Takes what begins at a row, and returns the row behind it; None: it begins nothing of that kind.
Take = Callable[[int], int | None]


def indent_of(line: str) -> int:
    """How many spaces are in front of a line's words."""
    return len(line) - len(line.lstrip())


class LineReader(ABC):
    """Reads the lines of a file. A subclass says what lines may begin, and what marks mean.

    Attributes
    ----------
    lines : of the file; a mark that is read is replaced there, so that a row stays a row
    page : gets the text
    takes : what lines may begin; the first that takes a row reads it

    Parameters
    ----------
    lines : of the file
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self.page = ReadPage()
        self.takes: Sequence[Take] = ()
        # The columns of the marks of the lists around a line.
        self._columns: list[int] = []
        self._is_behind_item = False

    def read(self) -> ReadPage:
        """What a person reads of the lines."""
        row = 0
        while row < len(self.lines):
            row = self._take(row)
        return self.page

    def _take(self, row: int) -> int:
        for take in self.takes:
            after = take(row)
            if after is not None:
                return after
        return row + 1

    def line(self, row: int) -> str:
        """A line; '' behind the last one."""
        return self.lines[row] if row < len(self.lines) else ''

    def end_of_indented(self, row: int, indent: int) -> int:
        """The row behind those that are empty, or indented more."""
        while row < len(self.lines):
            line = self.lines[row]
            if line.strip() and indent_of(line) <= indent:
                break
            row += 1
        return row

    def row_of(self, row: int, is_end: Callable[[str], object]) -> int:
        """The first row, from a row on, whose line is an end; that behind the last one for none."""
        while row < len(self.lines) and not is_end(self.lines[row]):
            row += 1
        return row

    @abstractmethod
    def plain(self, text: str) -> str:
        """The words of some lines without marks; they stay as many lines."""

    def title_of(self, text: str) -> str:
        """The words of a heading without marks."""
        return ' '.join(self.plain(text).split())

    def add_markup(self, start: int, end: int) -> None:
        """Add what a browser shows of rows of HTML."""
        markup = '\n'.join(self.lines[start:end])
        self.page.add_block([visible_text(markup, with_pictures=True)], start + 1)
        self._is_behind_item = False

    def add_code(self, start: int, end: int) -> int:
        """Add rows unchanged, except for the spaces in front of all of them.

        Returns the row behind them.
        """
        code = textwrap.dedent('\n'.join(self.lines[start:end])).split('\n')
        self.page.add_block(code, start + 1, is_code=True)
        self._is_behind_item = False
        return end

    def add_words(self, lines: Sequence[str], row: int, *, column: int = 0, mark: str = '') -> None:
        """Add the lines of a paragraph, or of a list's item, without their marks.

        Parameters
        ----------
        lines : as in the file
        row : of the first line
        column : where the paragraph, or its mark, begins
        mark : of an item; '' for none
        """
        while self._columns and self._columns[-1] >= column:
            self._columns.pop()
        if mark:
            self._columns.append(column)
        is_behind_empty = row == 0 or not self.lines[row - 1].strip()
        self.page.add_block(
            self.plain('\n'.join(lines)).split('\n'),
            row + 1,
            indent=INDENT * max(0, len(self._columns) - 1),
            mark=mark,
            is_tight=bool(mark) and self._is_behind_item and not is_behind_empty,
        )
        self._is_behind_item = bool(mark)

    def add_heading(self, level: int, title: str, anchor: str, row: int) -> None:
        """Add a heading, unless its title is empty.

        Parameters
        ----------
        level : 1 for the highest
        title : without marks
        anchor : how an address names the heading, or ''
        row : in which line of the file the heading begins, from 0
        """
        if not title:
            return
        self._columns = []
        self._is_behind_item = False
        self.page.add_heading(level, title, anchor, row + 1)

    def add_rows(self, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Add a table: for each row, where it begins, and its cells with marks."""
        is_tight = False
        for row, cells in rows:
            self.page.add_row(map(self.plain, cells), row + 1, is_tight=is_tight)
            is_tight = True
        self._is_behind_item = False

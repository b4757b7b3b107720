"""The text of PDF and Office files, from what the process that reads them answers.

Of workbooks, `sheet_tables.py` has the text.
Word files and EPUB come as HTML. The others come as lines, whose words are not Markdown: an address
in angle brackets is text, and so is '<!--'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.collection.files.read_page import ReadPage
from pyserini_repbert.data.markup import alternative_text

_SLIDE = re.compile(r'<!-- Slide number: \d+ -->')
_PICTURE = re.compile(r'!\[([^\]]*)\]\([^()]*\)')
_HEADING = re.compile(r'(#{1,3})[ ]+(\S.*)')
_ROW = re.compile(r'\|.*\|')
_ROW_RULE = re.compile(r'\|[|: -]+\|')
_CELL_END = re.compile(r'(?<!\\)\|')
_ESCAPED = re.compile(r'\\([!-/:-@[-`{-~])')


def read_office(suffix: str, text: str) -> ReadPage:
    """What a person reads of a file.

    Parameters
    ----------
    suffix : of the file, in small letters: '.pdf'
    text : that the process answers
    """
    return _READERS[suffix](text)


class _Lines:
    """Adds lines to a page: those between empty lines are a block."""

    def __init__(self) -> None:
        self.page = ReadPage()
        self._goes_on = False

    def add(self, line: str, number: int, is_escaped: bool = False) -> None:
        """Add a line, or a row of a table, which has a bar at each end.

        Parameters
        ----------
        line : without its end
        number : of the line, from 1
        is_escaped : whether signs of Markdown in a row are escaped with a backslash
        """
        line = line.strip()
        if _ROW_RULE.fullmatch(line):
            return
        if _ROW.fullmatch(line):
            cells = _CELL_END.split(line[1:-1])
            if is_escaped:
                cells = [_ESCAPED.sub(r'\1', cell) for cell in cells]
            self.page.add_row(cells, number, is_tight=self._goes_on)
        else:
            self.page.add_block([line], number, is_tight=self._goes_on)
        self._goes_on = bool(line)

    def add_heading(self, level: int, title: str, number: int) -> None:
        """Add a heading of a level, from 1, with a title in a line of a number, from 1."""
        self.page.add_heading(level, ' '.join(title.split()), '', number)
        self._goes_on = False


def _read_printed(text: str) -> ReadPage:
    """The pages of a PDF, between form feeds: their lines."""
    lines = _Lines()
    page = lines.page
    for number, printed in enumerate(text.split('\f'), 1):
        n_rows = len(page.lines)
        lines.add('', 0)
        for line in printed.split('\n'):
            lines.add(line, 1)
        if len(page.lines) > n_rows:
            # An empty row separates the pages.
            first = n_rows + 1 if n_rows else 0
            page.pages[first] = number
    return page


def _read_slides(text: str) -> ReadPage:
    """The slides of a presentation, which have titles, boxes of text, tables, notes."""
    lines = _Lines()
    # A line may end within a paragraph.
    for number, line in enumerate(text.replace('\v', '\n').split('\n'), 1):
        heading = _HEADING.fullmatch(line)
        picture = _PICTURE.fullmatch(line)
        if heading is not None:
            lines.add_heading(len(heading[1]), heading[2], number)
        elif _SLIDE.fullmatch(line):
            lines.add('', number)
        elif picture is not None:
            lines.add(alternative_text(picture[1]), number)
        else:
            lines.add(line, number, is_escaped=True)
    return lines.page


_READERS: Mapping[str, Callable[[str], ReadPage]] = {
    '.pdf': _read_printed,
    '.docx': read_html,
    '.pptx': _read_slides,
    '.epub': read_html,
}

"""What a person reads of AsciiDoc: its words and its code, without marks.

Attributes, comments, names of styles and files that are included are not text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyserini_repbert.collection.files.asciidoc_conditions import shown_lines
from pyserini_repbert.collection.files.asciidoc_marks import (
    CHARACTERS,
    MOST_VALUE,
    AsciidocIds,
    alternative_of,
    plain_asciidoc,
    with_attributes,
)
from pyserini_repbert.collection.files.line_reader import LineReader
from pyserini_repbert.collection.files.read_page import BULLET, ReadPage

_HEADING = re.compile(r'(={1,6}|#{1,6})[ ]+(\S.*)')
# By what underlines a heading, the highest first.
_UNDERLINES = '=-~^+'
_UNDERLINE = re.compile(r'([=~^+-])\1+')
_ATTRIBUTE = re.compile(r':(!?[\w-]+!?):(?:[ ]+(.*))?$')
_FENCE = re.compile(r'-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,:!]={3,}')
_CODE_FENCE = '```'
_CODE_SIGNS = ('----', '....', _CODE_FENCE)
_COMMENT_SIGNS = '////'
_PASSED_SIGNS = '++++'
_TABLE_SIGNS = ('|===', '!===', ',===', ':===')
_BAR = '|'
_COMMA = ','
_COLON = ':'
_ESCAPED_BAR = '\\|'
# Stands for it while a line is cut at bars.
_NO_BAR = '\ue000'
_STYLE = re.compile(r'\[(?:[\w.#%{,"\'][^\[\]]*)?\]|\[\[[^\[\]]*\]\]')
# Styles that come first: of code, of formulas; and the source of a quotation.
_CODE_STYLE = re.compile(r'\[(?:source|listing)\b|\[,[ ]*\w')
_FORMULA_STYLE = re.compile(r'\[(?:stem|latexmath|asciimath)\b')
_QUOTED_FROM = re.compile(r'\[(?:quote|verse)\b[^,]*,(.*)\]')
_NAME_OF_SOURCE = re.compile(r'^(?:attribution|citetitle)=')
_ID = re.compile(r'\[\[([\w:.-]+)(?:,[^\]]*)?\]\]|\[[\w-]*#([\w:.-]+)[^\]]*\]')
_BLOCK_TITLE = re.compile(r'\.([^\s.].*)')
_DIRECTIVE = re.compile(
    r'(?:include|ifdef|ifndef|ifeval|endif|toc|video|audio|image)::[^\s\[]*\[(.*)\]'
)
_NO_LINE = re.compile(r"//(?!/).*|'{3,}|<{3,}|\+|-{3}|\*{3}")
_ITEM = re.compile(r'(?:(\*{1,6}|-)|(\.{1,6})|(\d{1,9}\.)|<(?:\d{1,3}|\.)>)[ ]+')
_CHECK = re.compile(r'\[[ xX*]\][ ]+')
_TERM = re.compile(r'(\S.*?)(?:::{1,3}|;;)(?:[ ]+(\S.*))?$')
_LINE_END = re.compile(r'[ ]\+$')
_CELL = re.compile(
    r'(?:^|[ ])(?:(\d{0,3})(?:\.\d{1,3})?[+*])?[<^>]?(?:\.[<^>])?[adehlms]?\||(?<=\S)\|'
)
_COLUMNS = re.compile(r'cols=(?:"([^"]*)"|([^,\]]*))')
_SEPARATOR = re.compile(r'separator="?([^"\]\\])')
_TIMES = re.compile(r'(\d{1,3})\*')


def read_asciidoc(lines: Sequence[str]) -> ReadPage:
    """What a person reads of the lines of an AsciiDoc file."""
    return _Reader(shown_lines(lines)).read()


@dataclass(frozen=True)
class _Cell:
    """A cell of a table.

    Attributes
    ----------
    row : of the file, at which it begins
    width : how many columns it takes
    lines : of its words
    """

    row: int
    width: int
    lines: list[str]


class _Reader(LineReader):
    """Reads the lines of an AsciiDoc file."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self._attributes = dict(CHARACTERS)
        self._ids = AsciidocIds()
        # The anchor and the style above the next block.
        self._anchor = ''
        self._style = ''
        # The row behind the lines that belong to the document's title.
        self._header_end = 0
        # How many items the ordered lists have, by their depth.
        self._counts: dict[int, int] = {}
        self.takes = (
            self._take_empty,
            self._take_attribute,
            self._take_underlined,
            self._take_fenced,
            self._take_heading,
            self._take_style,
            self._take_directive,
            self._take_title,
            self._take_item,
            self._take_indented,
            self._take_paragraph,
        )

    def _take_empty(self, row: int) -> int | None:
        line = self.lines[row].rstrip()
        if line and not _NO_LINE.fullmatch(line):
            return None
        return row + 1

    def _take_attribute(self, row: int) -> int | None:
        match = _ATTRIBUTE.match(self.lines[row])
        if match is None:
            return None
        parts = [(match[2] or '').strip()]
        end = row + 1
        while parts[-1].endswith('\\') and end < len(self.lines):
            parts[-1] = parts[-1][:-1].rstrip(' +')
            parts.append(self.lines[end].strip())
            end += 1
        value = with_attributes(' '.join(parts), self._attributes)
        self._attributes[match[1].lower()] = value
        if len(value) > MOST_VALUE:
            # It may occur often, so it is parsed once, where it is defined.
            self.add_words([value], row)
        return end

    def _take_fenced(self, row: int) -> int | None:
        """Take a delimited block whose lines are not paragraphs, or the marks of one whose are."""
        fence = self.lines[row].rstrip()
        if fence.startswith(_CODE_FENCE):
            fence = _CODE_FENCE
        elif not _FENCE.fullmatch(fence):
            return None
        style = self._style
        self._style = ''
        is_table = fence.startswith(_TABLE_SIGNS)
        is_passed = fence.startswith(_PASSED_SIGNS)
        is_code = _is_code(fence, style)
        if not (is_table or is_code or is_passed or fence.startswith(_COMMENT_SIGNS)):
            return row + 1
        end = self.row_of(row + 1, lambda line: line.rstrip() == fence)
        if is_table:
            self._add_table(row + 1, end, sign=fence[0], style=style)
        elif is_code:
            self.add_code(row + 1, end)
        elif is_passed:
            self.add_markup(row + 1, end)
        return end + 1

    def _take_heading(self, row: int) -> int | None:
        match = _HEADING.fullmatch(self.lines[row].rstrip())
        if match is None:
            return None
        self._add_title(len(match[1]), match[2], row)
        return row + 1

    def _take_underlined(self, row: int) -> int | None:
        """Take a heading with a row of signs below it, as long as it is."""
        title = self.lines[row].rstrip()
        below = self.line(row + 1).rstrip()
        if _UNDERLINE.fullmatch(below) is None or abs(len(title) - len(below)) > 1:
            return None
        if not re.search(r'\w', title) or title[0] in ' \t.[':
            return None
        self._add_title(1 + _UNDERLINES.index(below[0]), title, row)
        return row + 2

    def _add_title(self, level: int, words: str, row: int) -> None:
        """Add a heading, whose words have marks."""
        is_title = level == 1 and not self.page.headings and not self.page.has_prose
        if is_title:
            self._header_end = self.row_of(row, lambda line: not line.strip())
            self._define_attributes(row, self._header_end)
        title = self.title_of(words)
        anchor = self._anchor or ('' if is_title else self._ids.next(title))
        self._anchor = ''
        self._style = ''
        self._counts.clear()
        self.add_heading(level, title, anchor, row)

    def _define_attributes(self, start: int, end: int) -> None:
        """Define the attributes of the document's header, which the title above may name."""
        for line in self.lines[start:end]:
            match = _ATTRIBUTE.match(line)
            if match is not None:
                value = with_attributes((match[2] or '').strip(), self._attributes)
                self._attributes.setdefault(match[1].lower(), value)

    def _take_style(self, row: int) -> int | None:
        """Take a line in brackets: the anchor, or the style, of the next block."""
        line = self.lines[row].rstrip()
        if not _STYLE.fullmatch(line):
            return None
        named = _ID.fullmatch(line)
        if named is not None:
            self._anchor = named[1] or named[2]
        if not line.startswith('[['):
            self._style += line
        source = _QUOTED_FROM.fullmatch(line)
        if source is not None:
            parts = [_NAME_OF_SOURCE.sub('', part.strip()) for part in source[1].split(',')]
            self.add_words([', '.join(part.strip('"') for part in parts)], row)
        return row + 1

    def _take_directive(self, row: int) -> int | None:
        line = self.lines[row].rstrip()
        match = _DIRECTIVE.fullmatch(line)
        if match is None:
            return None
        if line.startswith('image::'):
            self.add_words([alternative_of(match[1])], row)
        return row + 1

    def _take_title(self, row: int) -> int | None:
        match = _BLOCK_TITLE.fullmatch(self.lines[row].rstrip())
        if match is None:
            return None
        self.add_words([match[1]], row)
        return row + 1

    def _take_item(self, row: int) -> int | None:
        bare = self.lines[row].lstrip()
        match = _ITEM.match(bare)
        if match is None:
            return None
        self._style = ''
        end = self._end_of_paragraph(row + 1, is_item=True)
        depth = len(match[1] or match[2] or '')
        mark = BULLET
        if match[3] is not None:
            mark = f'{match[3]} '
        elif match[2] is not None:
            count = 1 + self._counts.get(depth, 0)
            self._counts = {known: n for known, n in self._counts.items() if known < depth}
            self._counts[depth] = count
            mark = f'{count}. '
        first = _CHECK.sub('', bare[match.end() :], count=1)
        lines = [first, *self.lines[row + 1 : end]]
        self.add_words(lines, row, column=depth, mark=mark)
        return end

    def _take_indented(self, row: int) -> int | None:
        """Take lines that are indented, which are literal."""
        if not self.lines[row][0].isspace():
            return None
        if _TERM.fullmatch(self.lines[row].strip()):
            return None
        end = self.row_of(row, lambda line: not line.strip() or line.strip() == '+')
        return self.add_code(row, end)

    def _take_paragraph(self, row: int) -> int | None:
        end = self._end_of_paragraph(row + 1)
        lines = self.lines[row:end]
        is_code = _CODE_STYLE.search(self._style)
        self._style = ''
        if is_code:
            return self.add_code(row, end)
        self._anchor = ''
        if row == 0 or self.lines[row - 1].strip() != '+':
            # A block attached to an item does not end its list.
            self._counts.clear()
        term = _TERM.fullmatch(lines[0].strip())
        if term is not None:
            lines[0] = term[1] if term[2] is None else f'{term[1]}: {term[2]}'
        self.add_words(lines, row)
        return end

    def _end_of_paragraph(self, row: int, is_item: bool = False) -> int:
        """The row behind the lines of a paragraph or an item, within which attributes are text."""
        may_be_attribute = is_item or row <= self._header_end

        def is_end(line: str) -> bool:
            if may_be_attribute and _ATTRIBUTE.match(line):
                return True
            return _begins_other(line)

        return self.row_of(row, is_end)

    def plain(self, text: str) -> str:
        lines = [_LINE_END.sub('', line.rstrip()) for line in text.split('\n')]
        return plain_asciidoc(with_attributes('\n'.join(lines), self._attributes))

    def _add_table(self, start: int, end: int, *, sign: str, style: str) -> None:
        """Add the rows of a table between two rows of the file, whose cells a sign parts."""
        separator = _SEPARATOR.search(style)
        if separator is not None:
            sign = separator[1]
        is_csv = sign == _COMMA or 'csv' in style
        if is_csv and sign == _BAR:
            sign = _COMMA
        cells: list[_Cell] = []
        n_columns = _count_columns(style)
        for row in range(start, end):
            line = _LINE_END.sub('', self.lines[row].rstrip())
            before, cells_of_line = _cells_of(line, sign, row, is_csv)
            if before.strip():
                _continue_cell(cells, before, row)
            cells += cells_of_line
            n_columns = n_columns or sum(cell.width for cell in cells_of_line)
        self.add_rows(_rows_of(cells, n_columns))


def _is_code(fence: str, style: str) -> bool:
    """Whether a block is code: by the signs around it, or by the style above it."""
    if fence.startswith(_CODE_SIGNS) or _CODE_STYLE.search(style):
        return True
    # A formula is passed on unchanged.
    return fence.startswith(_PASSED_SIGNS) and bool(_FORMULA_STYLE.search(style))


def _begins_other(line: str) -> bool:
    """Whether a line ends the paragraph above it: it is empty, or begins another block."""
    bare = line.strip()
    if bare in ('', '+') or line.startswith('//') or bare.startswith(_CODE_FENCE):
        return True
    is_block = _FENCE.fullmatch(bare) or _STYLE.fullmatch(bare)
    is_item = _ITEM.match(bare) or _TERM.fullmatch(bare)
    return bool(is_block or is_item or _DIRECTIVE.fullmatch(line.rstrip()))


def _continue_cell(cells: list[_Cell], words: str, row: int) -> None:
    """Add words to the last cell, or as a new cell if there is none."""
    if cells:
        cells[-1].lines.append(words)
    else:
        cells.append(_Cell(row, 1, [words]))


def _rows_of(cells: Iterable[_Cell], n_columns: int) -> list[tuple[int, list[str]]]:
    """The rows of a table with so many columns: the row of the file that each begins in, and the
    words of its cells.
    """
    rows: list[tuple[int, list[str]]] = []
    width = n_columns
    for cell in cells:
        if width >= n_columns:
            rows.append((cell.row, []))
            width = 0
        rows[-1][1].append(' '.join(cell.lines).strip())
        width += cell.width
    return rows


def _cells_of(line: str, sign: str, row: int, is_csv: bool) -> tuple[str, list[_Cell]]:
    """The text in front of a line's first cell, and its cells.

    Parameters
    ----------
    line : of a table
    sign : that parts cells
    row : of the line in the file
    is_csv : whether a cell may be in quotation marks
    """
    if is_csv or sign == _COLON:
        return '', [_Cell(row, 1, [part]) for part in _parted(line, sign, is_csv)]
    if sign != _BAR:
        line = line.replace(_BAR, _NO_BAR).replace(sign, _BAR)
    if _BAR not in line:
        return line.replace(_NO_BAR, _BAR), []
    before, *parts = _CELL.split(line.replace(_ESCAPED_BAR, _NO_BAR))
    cells = []
    for width, words in zip(parts[::2], parts[1::2], strict=True):
        cells.append(_Cell(row, int(width or 1), [words.replace(_NO_BAR, _BAR)]))
    return before.replace(_NO_BAR, _BAR), cells


def _parted(line: str, sign: str, is_csv: bool) -> list[str]:
    """The cells of a line; separators within quotation marks of CSV do not count."""
    if not line.strip():
        return []
    if is_csv:
        try:
            return next(csv.reader([line], delimiter=sign, skipinitialspace=True))
        except csv.Error:
            # Of a cell that is longer than the module takes.
            pass
    return line.split(sign)


def _count_columns(style: str) -> int:
    """How many columns a table's style names; 0 for none."""
    match = _COLUMNS.search(style)
    if match is None:
        return 0
    columns = (match[1] or match[2] or '').strip()
    if columns.isdecimal():
        return int(columns[:4])
    n_columns = 0
    for part in re.split('[,;]', columns):
        times = _TIMES.match(part.strip())
        n_columns += int(times[1]) if times else 1
    return n_columns

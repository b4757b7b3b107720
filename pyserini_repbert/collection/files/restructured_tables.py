"""The rows of reStructuredText's tables, each with the cells of its columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from pyserini_repbert.collection.files.line_reader import indent_of

_PAD = '\0'
# Where a row begins, and its cells.
Row = tuple[int, list[str]]
# Where a row begins, and the parts of its cells in each of its lines.
_LinesOfRow = tuple[int, list[list[str]]]
_GRID_LINE = re.compile(r'\+(?:[-=]+\+)+')
_SIMPLE_LINE = re.compile(r'=+(?:[ ]+=+)+')
_SPAN_LINE = re.compile(r'-+(?:[ ]+-+)*')
_COLUMN = re.compile(r'=+')
_SPAN = re.compile(r'-+')
_RULE = re.compile(r'[-=+]+')
# An item of a list of rows, within which a list of cells begins; any of the signs marks a list.
_ITEM = re.compile(r'[ ]*[*+-][ ]+(?=([*+-])(?:[ ]|$))')
_CELL_ITEM = re.compile(r'[-*][ ]+')


@dataclass(frozen=True)
class SimpleTable:
    """A table between rows of '='.

    Attributes
    ----------
    rows : of the table
    end : the first row of the file behind it
    """

    rows: Sequence[Row]
    end: int


def is_grid_line(line: str) -> bool:
    """Whether a line is one between the rows of a grid: '+---+---+'."""
    return _GRID_LINE.fullmatch(line) is not None


def is_simple_line(line: str) -> bool:
    """Whether a line begins or ends a simple table: '===  ==='."""
    return _SIMPLE_LINE.fullmatch(line) is not None


def grid_table_rows(lines: Sequence[str], start: int, end: int) -> list[Row]:
    """The rows of a grid table, which has some rows of a file.

    A cell that spans columns is one cell; of one that spans rows, each row has its part.
    """
    borders = _borders_of(lines[start:end])
    rows: list[_LinesOfRow] = []
    is_new = True
    for number in range(start, end):
        line = lines[number]
        is_border = line.lstrip().startswith('+')
        cells = _grid_cells(line, borders)
        if is_border:
            cells = ['' if _RULE.fullmatch(cell) else cell for cell in cells]
        if is_border or is_new:
            # A cell that spans rows continues within a border.
            rows.append((number, []))
        rows[-1][1].append(cells)
        is_new = is_border
    return [row for row in map(_joined, rows) if any(row[1])]


def _borders_of(lines: Sequence[str]) -> list[int]:
    """Where columns begin and end: the first row of a table may span several of them."""
    borders: set[int] = set()
    for line in lines:
        if is_grid_line(line.strip()):
            borders.update(place for place, sign in enumerate(line) if sign == '+')
    return sorted(borders)


def _joined(row: _LinesOfRow) -> Row:
    """A row with the words of all lines of each of its cells."""
    number, lines = row
    cells = []
    for column in range(len(lines[0])):
        words = [line[column] for line in lines]
        words[1:] = [_CELL_ITEM.sub('', word, count=1) for word in words[1:]]
        cells.append(' '.join(word for word in words if word))
    return number, cells


def _grid_cells(line: str, borders: Sequence[int]) -> list[str]:
    """The parts of a line between the borders that it has; '' for a column that is spanned."""
    line = _padded(line)
    cells: list[str] = []
    start = borders[0] + 1
    n_spanned = 0
    for border in borders[1:]:
        if line[border : border + 1] in ('|', '+'):
            cells.append(_cell(line[start:border]))
            start = border + 1
        elif border == borders[-1]:
            cells.append(_cell(line[start:]).rstrip('|'))
        else:
            n_spanned += 1
            continue
        cells += [''] * n_spanned
        n_spanned = 0
    return cells


def simple_table_rows(lines: Sequence[str], start: int) -> SimpleTable | None:
    """The table that begins at a row; None if no row ends it."""
    indent = indent_of(lines[start])
    columns = _starts(_COLUMN, lines[start])
    rows: list[_LinesOfRow] = []
    # The rows of the file that are the last row of the table.
    of_row: list[int] = []
    number = start + 1
    is_header_behind = False
    while number < len(lines):
        line = lines[number]
        bare = line.strip()
        is_end = is_simple_line(bare)
        if is_end or _SPAN_LINE.fullmatch(bare):
            # A line of hyphens says which columns the cells above it span.
            _add_simple_row(rows, lines, of_row, columns if is_end else _starts(_SPAN, line))
            of_row = []
        elif bare and indent_of(line) < indent:
            return None
        elif bare:
            if of_row and line[: columns[1]].strip():
                _add_simple_row(rows, lines, of_row, columns)
                of_row = []
            of_row.append(number)
        if is_end:
            is_last = number + 1 == len(lines) or not lines[number + 1].strip()
            if is_last or is_header_behind:
                return SimpleTable(list(map(_joined, rows)), number + 1)
            is_header_behind = True
        number += 1
    return None


def _starts(column: re.Pattern[str], line: str) -> list[int]:
    """Where the columns begin that a line underlines."""
    return [match.start() for match in column.finditer(line)]


def _add_simple_row(
    rows: list[_LinesOfRow], lines: Sequence[str], of_row: Sequence[int], columns: Sequence[int]
) -> None:
    """Add some lines of a file, `of_row`, as a row; nothing for none of them."""
    if of_row:
        rows.append((of_row[0], [_simple_cells(lines[number], columns) for number in of_row]))


def _simple_cells(line: str, columns: Sequence[int]) -> list[str]:
    line = _padded(line)
    ends = [*columns[1:], len(line)]
    return [_cell(line[begin:end]) for begin, end in zip(columns, ends, strict=True)]


def _padded(line: str) -> str:
    """A line in which a character that takes two columns is two characters."""
    if line.isascii():
        return line
    wide = [sign + _PAD if east_asian_width(sign) in 'WF' else sign for sign in line]
    return ''.join(wide)


def _cell(part: str) -> str:
    """The words of a part of a padded line."""
    return part.replace(_PAD, '').strip()


def list_table_rows(lines: Sequence[str], start: int, end: int) -> list[Row]:
    """The rows of a table that is written as a list of lists."""
    rows: list[Row] = []
    # The positions of the cells' marks, and their sign.
    column = 0
    sign = ''
    for number, line in _lines_with_words(lines, start, end):
        item = _ITEM.match(line)
        if item is not None and (not rows or indent_of(line) < column):
            rows.append((number, [line[item.end() + 1 :].strip()]))
            column = item.end()
            sign = item[1]
        elif not rows:
            # The table is not a list of lists.
            rows.append((number, [line.strip()]))
        elif sign and indent_of(line) == column and line[column] == sign:
            rows[-1][1].append(line[column + 1 :].strip())
        else:
            cells = rows[-1][1]
            words = _CELL_ITEM.sub('', line.strip(), count=1)
            cells[-1] = f'{cells[-1]} {words}'.strip()
    return rows


def csv_table_rows(
    lines: Sequence[str], start: int, end: int, options: Mapping[str, str]
) -> list[Row]:
    """The rows of a table that is written as CSV.

    Parameters
    ----------
    lines : of a file
    start, end : the rows of the file with the table, and the first behind them
    options : of the directive: 'delim', 'quote' and 'escape' as in docutils, one character each
    """
    named = options.get('delim', ',')
    delimiter = {'tab': '\t', 'space': ' '}.get(named, named)
    quote = options.get('quote', '"')
    escape = options.get('escape', '')[:1] or None
    is_known = len(delimiter) == 1 and len(quote) == 1
    if not is_known or len({delimiter, quote, escape}) < 3:
        return [(number, [line.strip()]) for number, line in _lines_with_words(lines, start, end)]
    rows: list[Row] = []
    number = start
    texts = [line.strip() for line in lines[start:end]]
    reader = csv.reader(
        (f'{text}\n' for text in texts),
        delimiter=delimiter,
        quotechar=quote,
        escapechar=escape,
        skipinitialspace=True,
    )
    try:
        for cells in reader:
            if any(cells):
                rows.append((number, cells))
            number = start + reader.line_num
    except csv.Error:
        # Of a cell that is longer than the module takes.
        behind = _lines_with_words(lines, number, end)
        rows += [(behind_number, [line.strip()]) for behind_number, line in behind]
    return rows


def _lines_with_words(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, str]]:
    for number in range(start, end):
        if lines[number].strip():
            yield number, lines[number]

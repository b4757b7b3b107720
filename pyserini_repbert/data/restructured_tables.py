"""The rows of reStructuredText's tables, each with the cells of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from pyserini_repbert.data.line_reader import indent_of

_PAD = '\0'
# Where a row begins, and its cells.
Row = tuple[int, list[str]]
_GRID_LINE = re.compile(r'\+(?:[-=]+\+)+')
_SIMPLE_LINE = re.compile(r'=+(?:[ ]+=+)+')
_SPAN_LINE = re.compile(r'-+(?:[ ]+-+)*')
_RULE = re.compile(r'[-=+]+')
_ITEM = re.compile(r'[ ]*\*[ ]+-(?:[ ]+|$)')
_CELL = re.compile(r'[ ]*-(?:[ ]+|$)')
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
    borders = [place for place, sign in enumerate(lines[start]) if sign == '+']
    rows: list[Row] = []
    is_new = True
    for number in range(start, end):
        line = lines[number]
        is_border = line.lstrip().startswith('+')
        cells = ['' if _RULE.fullmatch(cell) else cell for cell in _grid_cells(line, borders)]
        if is_border or is_new:
            # A cell that spans rows goes on within a border.
            rows.append((number, cells))
        else:
            _append_cells(rows[-1][1], cells)
        is_new = is_border
    return [(number, cells) for number, cells in rows if any(cells)]


def _grid_cells(line: str, borders: Sequence[int]) -> list[str]:
    """The parts of a line between the borders that it has; '' for a column that is spanned."""
    line = _padded(line)
    cells = []
    start = borders[0] + 1
    for border in borders[1:]:
        if line[border : border + 1] in ('|', '+'):
            cells.append(_cell(line[start:border]))
            start = border + 1
        elif border == borders[-1]:
            cells.append(_cell(line[start:]).rstrip('|'))
        else:
            cells.append('')
    return cells


def _append_cells(cells: list[str], more: Sequence[str]) -> None:
    """Append a further line of a row to its cells."""
    for column, words in enumerate(more):
        cells[column] = f'{cells[column]} {_CELL_ITEM.sub("", words, count=1)}'.strip()


def simple_table_rows(lines: Sequence[str], start: int) -> SimpleTable | None:
    """The table that begins at a row; None where no row ends it."""
    indent = indent_of(lines[start])
    columns = [match.start() for match in re.finditer('=+', lines[start])]
    rows: list[Row] = []
    number = start + 1
    is_header_behind = False
    while number < len(lines):
        line = lines[number]
        bare = line.strip()
        if is_simple_line(bare):
            is_last = number + 1 == len(lines) or not lines[number + 1].strip()
            if is_last or is_header_behind:
                return SimpleTable(rows, number + 1)
            is_header_behind = True
        elif bare and indent_of(line) < indent:
            return None
        elif bare and not _SPAN_LINE.fullmatch(bare):
            _add_simple_line(rows, number, _simple_cells(line, columns))
        number += 1
    return None


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


def _add_simple_line(rows: list[Row], number: int, cells: list[str]) -> None:
    """Add a line as a row; one whose first cell is empty goes on with the row before."""
    if cells[0] or not rows:
        rows.append((number, cells))
    else:
        _append_cells(rows[-1][1], cells)


def list_table_rows(lines: Sequence[str], start: int, end: int) -> list[Row]:
    """The rows of a table that is written as a list of lists."""
    rows: list[Row] = []
    for number, line in _lines_with_words(lines, start, end):
        item = _ITEM.match(line)
        cell = _CELL.match(line)
        if item is not None:
            rows.append((number, [line[item.end() :]]))
        elif not rows:
            continue
        elif cell is not None and indent_of(line) <= indent_of(lines[rows[-1][0]]) + 3:
            rows[-1][1].append(line[cell.end() :])
        else:
            rows[-1][1][-1] += f' {_CELL_ITEM.sub("", line.strip(), count=1)}'
    return rows


def _lines_with_words(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, str]]:
    for number in range(start, end):
        if lines[number].strip():
            yield number, lines[number]

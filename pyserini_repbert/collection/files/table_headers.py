"""The row of a table that names its columns, and the rows above it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyserini_repbert.collection.files.html_documents import value_of_text

_LONGEST_NAME = 60  # characters of a column's name
_LETTER = re.compile(r'[^\W\d_]')
_DIGIT = re.compile(r'\d')


def filled_cells(cells: Sequence[str]) -> list[str]:
    """The cells with a value."""
    return [cell for cell in cells if cell.strip()]


def has_digit(cell: str) -> bool:
    """Whether a cell has a digit."""
    return bool(_DIGIT.search(cell))


def is_name(cell: str) -> bool:
    """Whether a cell may name a column: a short text that is neither a number nor a date."""
    is_short = 0 < len(cell) <= _LONGEST_NAME
    has_words = bool(_LETTER.search(cell)) or not has_digit(cell)
    return is_short and has_words and isinstance(value_of_text(cell), str)


def are_rows(rows: Sequence[Sequence[str]], n_columns: int) -> bool:
    """Whether rows fill their columns: most have several cells, and no more than columns.

    On average, they have half of the cells.
    """
    n_cells = 0
    n_rows = 0
    for row in rows:
        n_filled = len(filled_cells(row))
        n_cells += n_filled
        n_rows += n_filled > 1 and len(row) <= n_columns
    return 2 * n_rows > len(rows) and 2 * n_cells >= len(rows) * n_columns


def have_other_values(rows: Sequence[Sequence[str]], n_columns: int) -> bool:
    """Whether most values of a column are other than names, such as numbers and dates."""
    for column in range(n_columns):
        values = filled_cells([row[column] for row in rows if len(row) > column])
        n_other = sum(not is_name(value) for value in values)
        if 2 * n_other > len(values):
            return True
    return False


def rows_above_header(rows: Sequence[Sequence[str]]) -> int:
    """How many rows are above the one that names the columns; 0 if the first one does.

    Banks write an account, its owner and a period above the bookings. Such rows have at most half
    as many values as the table has columns, and the first one has at most two.

    Parameters
    ----------
    rows : the first rows of a file, empty ones among them
    """
    if len(filled_cells(rows[0])) > 2:
        return 0
    most = 0
    for number, row in enumerate(rows):
        names = _without_empty_end(row)
        if 2 * most <= len(names) and number and _name_columns(names, rows[number + 1 :]):
            return number
        most = max(most, len(filled_cells(row)))
    return 0


def _without_empty_end(row: Sequence[str]) -> list[str]:
    """A row without the empty cells at its end."""
    cells = [cell.strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _name_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row names the three or more columns of the rows below it.

    They have numbers or dates: a row of texts may be one of them.
    """
    are_names = all(map(is_name, names)) and len(set(names)) == len(names)
    if len(names) < 3 or not are_names:
        return False
    below = [_without_empty_end(row) for row in rows if filled_cells(row)]
    fill_columns = bool(below) and are_rows(below, len(names))
    return fill_columns and have_other_values(below, len(names))

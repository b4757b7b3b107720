"""The sheets of a workbook. Some are tables, whose rows are documents; the others are text.

A sheet is a table if its first row with several cells names the columns. Lines of one cell may
precede it. They are text, like sheets without a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.html_documents import value_of_text
from pyserini_repbert.collection.files.read_page import ReadPage
from pyserini_repbert.collection.files.table_documents import FileTable, NumberedRow, distinct_names
from pyserini_repbert.data.documents import MAX_FIELDS, Document
from pyserini_repbert.data.origins import Heading, Origin, docid_of_path
from pyserini_repbert.data.unread_files import UnreadableFile

_LONGEST_NAME = 60  # characters of a column's name
_MOST_ABOVE = 8  # lines above a table
_FEWEST_ROWS = 2
# A form has two columns and few rows: 'Name', 'Ada'; 'City', 'London'.
_MOST_ROWS_OF_FORM = 12
# The column that has the sheet's name, if a workbook has several sheets.
_SHEET = 'sheet'
_LETTER = re.compile(r'[^\W\d_]')
_DIGIT = re.compile(r'\d')


@dataclass(frozen=True)
class Sheet:
    """A sheet with cells.

    Attributes
    ----------
    name : of the sheet
    rows : that have a cell, each with its number in the sheet
    """

    name: str
    rows: Sequence[NumberedRow]


@dataclass(frozen=True)
class Workbook:
    """A workbook, with its tables separate from its text.

    Attributes
    ----------
    tables : the sheets whose first row names the columns
    others : the sheets that are not tables, and the lines above tables
    has_several : whether it has several sheets
    """

    tables: Sequence[Sheet]
    others: Sequence[Sheet]
    has_several: bool


def read_workbook(text: str, fields: Sequence[str]) -> Workbook:
    """The sheets of a workbook.

    Parameters
    ----------
    text : from the process: the names of sheets, and rows as numbers and cells with tabs
    fields : the columns that are asked for as text; a sheet without them is not a table
    """
    sheets = _parse_sheets(text)
    tables = []
    others = []
    for sheet in sheets:
        n_above = _lines_above(sheet)
        table = _without_empty_columns(Sheet(sheet.name, sheet.rows[n_above:]))
        if _is_table(table, fields):
            tables.append(table)
            sheet = Sheet(sheet.name, sheet.rows[:n_above])
        if sheet.rows:
            others.append(sheet)
    return Workbook(tables, others, has_several=len(sheets) > 1)


def page_of_sheets(sheets: Sequence[Sheet]) -> ReadPage:
    """Sheets as text, each with a heading and its rows."""
    page = ReadPage()
    for sheet in sheets:
        if sheet.name:
            page.add_heading(2, sheet.name, '', 1)
        is_tight = False
        for row in sheet.rows:
            page.add_row(row.values, row.row, is_tight=is_tight)
            is_tight = True
    return page


def row_documents(file: FileToRead, workbook: Workbook) -> Iterator[Document]:
    """The documents of the rows of a workbook's tables.

    Their docids begin with the file's and the name of the sheet: 'prices.xlsx#Bikes#3'.

    Raises UnreadableFile if the workbook is the whole corpus and lacks the requested title column.
    """
    _check_title_column(file, workbook.tables)
    for table in workbook.tables:
        # Two sheets may have the same name for a row. A name may have the sign that ends it.
        name = docid_of_path(table.name).replace('#', '%23')
        of_sheet = replace(file, docid=f'{file.docid}#{name}', is_alone=False)
        header, *rows = table.rows
        if workbook.has_several:
            header, rows = _with_sheet(table.name, header, rows)
        for document in FileTable(of_sheet, header.values).documents(rows):
            origin = document.origin or Origin()
            heading = Heading(0, 1, table.name, '')
            yield replace(document, origin=replace(origin, headings=(heading,)))


def _parse_sheets(text: str) -> list[Sheet]:
    names: list[str] = []
    rows_of_sheets: list[list[NumberedRow]] = []
    for line in text.split('\n'):
        number, *cells = line.split('\t')
        if cells:
            rows_of_sheets[-1].append(NumberedRow(cells, row=int(number)))
        else:
            names.append(line)
            rows_of_sheets.append([])
    names = distinct_names(names)
    return [Sheet(name, rows) for name, rows in zip(names, rows_of_sheets, strict=True)]


def _lines_above(sheet: Sheet) -> int:
    """How many rows are above the first one with several cells."""
    for number, row in enumerate(sheet.rows[: _MOST_ABOVE + 1]):
        if len(_filled(row.values)) > 1:
            return number
    return 0


def _without_empty_columns(sheet: Sheet) -> Sheet:
    """A sheet without the empty columns in front."""
    n_empty = min((_n_empty(row.values) for row in sheet.rows), default=0)
    rows = [row._replace(values=row.values[n_empty:]) for row in sheet.rows]
    return Sheet(sheet.name, rows)


def _n_empty(cells: Sequence[str]) -> int:
    """How many empty cells are before the first one with words."""
    return next((number for number, cell in enumerate(cells) if cell), len(cells))


def _filled(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if cell]


def _is_table(sheet: Sheet, fields: Sequence[str]) -> bool:
    """Whether the first row of a sheet names the columns of the rows below."""
    if len(sheet.rows) <= _FEWEST_ROWS:
        return False
    header, *rows = [row.values for row in sheet.rows]
    names = {name.casefold() for name in header}
    if not 1 < len(header) <= MAX_FIELDS or len(names) < len(header):
        return False
    if not all(map(_is_name, header)) or not {field.casefold() for field in fields} <= names:
        return False
    return _are_rows(rows, len(header)) and not _may_be_form(header, rows)


def _is_name(cell: str) -> bool:
    """Whether a cell may name a column: a short text that is neither a number nor a date."""
    is_short = 0 < len(cell) <= _LONGEST_NAME
    has_words = bool(_LETTER.search(cell)) or not _DIGIT.search(cell)
    return is_short and has_words and isinstance(value_of_text(cell), str)


def _are_rows(rows: Sequence[Sequence[str]], n_columns: int) -> bool:
    """Whether rows fill their columns: most have several cells, and no more than columns.

    On average, they have half of the cells.
    """
    n_cells = 0
    n_rows = 0
    for row in rows:
        n_filled = len(_filled(row))
        n_cells += n_filled
        n_rows += n_filled > 1 and len(row) <= n_columns
    return 2 * n_rows > len(rows) and 2 * n_cells >= len(rows) * n_columns


def _may_be_form(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether two columns are the questions and the answers of a form, the first row among them.

    The values of a table are numbers, or longer than what names them.
    """
    if len(header) > 2 or len(rows) > _MOST_ROWS_OF_FORM:
        return False
    values = [row[1] for row in rows if len(row) > 1]
    numbers = [value for value in values if not _is_name(value) and _DIGIT.search(value)]
    are_numbers = 5 * len(numbers) >= 4 * len(values)
    return not are_numbers and len(header[1]) >= median(map(len, values))


def _with_sheet(
    name: str, header: NumberedRow, rows: Sequence[NumberedRow]
) -> tuple[NumberedRow, list[NumberedRow]]:
    """A table with the name of its sheet as its first column, unless it has such a column."""
    if _SHEET in [column.casefold() for column in header.values]:
        return header, list(rows)
    width = max(len(row.values) for row in rows)
    unnamed = [f'column {number}' for number in range(len(header.values) + 1, width + 1)]
    named = header._replace(values=[_SHEET, *header.values, *unnamed])
    return named, [row._replace(values=[name, *row.values]) for row in rows]


def _check_title_column(file: FileToRead, tables: Sequence[Sheet]) -> None:
    if not (file.is_alone and file.title_column):
        return
    columns = [name for table in tables for name in table.rows[0].values]
    if file.title_column.casefold() not in [name.casefold() for name in columns]:
        shown = ', '.join(columns)[:80] or 'no table'
        raise UnreadableFile(f"it has no column '{file.title_column}', but {shown}")

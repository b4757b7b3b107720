"""The sheets of a workbook. Some are tables, whose rows are documents; the others are text.

A sheet is a table if its first row with several cells names the columns. Lines of one cell may
precede it. They are text, like sheets without a table. Below an empty row, another table may begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.read_page import ReadPage
from pyserini_repbert.collection.files.table_documents import FileTable, NumberedRow, distinct_names
from pyserini_repbert.collection.files.table_headers import (
    are_rows,
    filled_cells,
    has_digit,
    have_other_values,
    is_name,
)
from pyserini_repbert.data.documents import MAX_FIELDS, Document
from pyserini_repbert.data.origins import Heading, Origin, docid_of_path
from pyserini_repbert.data.unread_files import UnreadableFile

_MOST_ABOVE = 8  # lines above a table
_FEWEST_ROWS = 2
# A form has two columns and few rows: 'Name', 'Ada'; 'City', 'London'.
_MOST_ROWS_OF_FORM = 12
_ROWS_LOOKED_AT = 200  # of the rows above, which decide whether another table begins
# The column that has the sheet's name, if a workbook has several sheets.
_SHEET = 'sheet'


@dataclass(frozen=True)
class Sheet:
    """A sheet with cells, or one of its tables.

    Attributes
    ----------
    name : of the sheet
    rows : that have a cell, each with its number in the sheet
    number : of the table in its sheet, from 1
    """

    name: str
    rows: Sequence[NumberedRow]
    number: int = 1

    @property
    def docid(self) -> str:
        """Names the table in docids: no sheet's name has a colon."""
        name = docid_of_path(self.name).replace('#', '%23')
        return name if self.number == 1 else f'{name}:{self.number}'


@dataclass(frozen=True)
class Workbook:
    """A workbook, with its tables separate from its text.

    Attributes
    ----------
    tables : the sheets, or their parts, whose first row names the columns
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
        rows_of_text: list[NumberedRow] = []
        n_tables = 0
        for rows in _split_at_tables(sheet.rows, fields):
            n_above = _lines_above(rows)
            table = _without_empty_columns(Sheet(sheet.name, rows[n_above:]))
            if _is_table(table, fields):
                n_tables += 1
                tables.append(replace(table, number=n_tables))
                rows_of_text += rows[:n_above]
            else:
                rows_of_text += rows
        if rows_of_text:
            others.append(Sheet(sheet.name, rows_of_text))
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
        # Two sheets may have the same name for a row.
        of_sheet = replace(file, docid=f'{file.docid}#{table.docid}', is_alone=False)
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


def _split_at_tables(
    rows: Sequence[NumberedRow], fields: Sequence[str]
) -> Iterator[list[NumberedRow]]:
    """The rows of a sheet, split where another table begins below an empty row."""
    part: list[NumberedRow] = []
    for block in _blocks(rows):
        if part and _begins_table(block, part[:_ROWS_LOOKED_AT], fields):
            yield part
            part = []
        part += block
    yield part


def _blocks(rows: Sequence[NumberedRow]) -> Iterator[list[NumberedRow]]:
    """The rows between empty rows."""
    block: list[NumberedRow] = []
    for row in rows:
        if block and row.row > block[-1].row + 1:
            yield block
            block = []
        block.append(row)
    yield block


def _begins_table(
    block: Sequence[NumberedRow], above: Sequence[NumberedRow], fields: Sequence[str]
) -> bool:
    """Whether rows below an empty row are a table, and not more rows of the one above them.

    Below text in several columns, such as the addresses of an invoice, only a long table is one:
    the lines of a short one are read with that text.
    """
    table = _without_empty_columns(Sheet('', block[_lines_above(block) :]))
    if not _is_table(table, fields):
        return False
    names, *rows = [row.values for row in table.rows]
    has_other_values = have_other_values(rows, len(names))
    table_above = _without_empty_columns(Sheet('', above[_lines_above(above) :]))
    if not _is_table(table_above, fields):
        return has_other_values and len(table.rows) > _MOST_ROWS_OF_FORM
    names_above = table_above.rows[0].values
    n_wider = sum(len(row) > len(names_above) for row in rows)
    return names == names_above or 2 * n_wider > len(rows) or has_other_values


def _lines_above(rows: Sequence[NumberedRow]) -> int:
    """How many rows are above the first one with several cells."""
    for number, row in enumerate(rows[: _MOST_ABOVE + 1]):
        if len(filled_cells(row.values)) > 1:
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


def _is_table(sheet: Sheet, fields: Sequence[str]) -> bool:
    """Whether the first row of a sheet names the columns of the rows below."""
    if len(sheet.rows) <= _FEWEST_ROWS:
        return False
    header, *rows = [row.values for row in sheet.rows]
    names = {name.casefold() for name in header}
    if not 1 < len(header) <= MAX_FIELDS or len(names) < len(header):
        return False
    if not all(map(is_name, header)) or not {field.casefold() for field in fields} <= names:
        return False
    return are_rows(rows, len(header)) and not _may_be_form(header, rows)


def _may_be_form(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether two columns are the questions and the answers of a form, the first row among them.

    The values of a table are numbers, or longer than what names them.
    """
    if len(header) > 2 or len(rows) > _MOST_ROWS_OF_FORM:
        return False
    values = [row[1] for row in rows if len(row) > 1]
    numbers = [value for value in values if not is_name(value) and has_digit(value)]
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

"""Tables and lists of records as documents: CSV and TSV with headers, Parquet, JSON.

A row is a document. Its docid is in the column `id`, or it is the number of the row. The columns of
`TEXT_COLUMNS` are its text; a table without them has a line for each column: 'name: value', and the
column that names its rows is their title. So does a table that describes things: it has only
`description` of these columns, and no `title`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.archives import FREE_BYTES, MAX_RATIO
from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.html_documents import value_of_text
from pyserini_repbert.collection.files.row_titles import title_column
from pyserini_repbert.collection.files.stated_dates import name_date
from pyserini_repbert.collection.files.table_headers import rows_above_header
from pyserini_repbert.data.documents import (
    DOCID_KEYS,
    MAX_FIELDS,
    TITLE_KEY,
    Document,
    plain_fields,
)
from pyserini_repbert.data.record_kinds import DESCRIPTION, TEXT_COLUMNS, WITHOUT_RECORDS
from pyserini_repbert.data.suffixes import COMMA_SEPARATED, has_suffix_or_packed
from pyserini_repbert.data.text_encodings import encoding_of_lines, is_utf_16
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import human_size, numbered_bytes, open_binary

_MOST_CELL = 16_000_000  # characters
_DELIMITERS = ',;\t|'
_LINES_LOOKED_AT = 30  # for the one that names the columns
_ROWS_AT_ONCE = 1_024
# So many rows decide which column is the title, or fewer with so many characters.
_ROWS_OF_TITLES = 100
_CHARACTERS_OF_TITLES = 1_000_000
_ITEMS_BEGIN = re.compile(r'[\[{]')
_SEPARATORS = re.compile(r'[\s,:]*')
_JSON = json.JSONDecoder()
# Excel's 'sep=;' in front of a table, possibly in quotation marks.
_NAMED_DELIMITER = re.compile(r'"?sep=([^\w\s"]|\t)"?[,;\t]*\r?\n?', re.IGNORECASE)
# The line end of old Macintoshes.
_CARRIAGE_RETURN = re.compile(rb'\r(?!\n|$)')
_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf'{_QUOTED}|//[^\n]*|/\*[\s\S]{{0,2000}}?\*/')
_LAST_COMMA = re.compile(rf'{_QUOTED}|,(?=\s*[\]}}])')


def table_documents(file: FileToRead) -> Iterator[Document]:
    """The documents of a CSV or TSV file, whose first row names the columns.

    Lines above that row are a separate document. The cells of a row are texts, numbers and truth
    values, as they read.
    """
    # The limit is one for the process; a cell beyond the usual 131,072 characters is an error.
    csv.field_size_limit(max(_MOST_CELL, csv.field_size_limit()))
    lines = _text_lines(file)
    first = _look_at(lines)
    start = _find_header(file, first.lines)
    if start.above:
        yield Document(file.docid, start.above, file.path.stem).at_line(1)
    table = chain(first.lines[start.n_above :], first.raise_error(), lines)
    rows = _rows_with_values(table, start.delimiter, first=start.n_above + 1)
    header = next(rows, NumberedRow(()))
    yield from FileTable(file, header.values).documents(rows)


@dataclass(frozen=True)
class _FirstLines:
    """The first lines of a file, and what reading the one behind them raised."""

    lines: Sequence[str]
    error: Exception | None = None

    def raise_error(self) -> Iterator[str]:
        """No line. Raises the error, where there is one."""
        if self.error is not None:
            raise self.error
        yield from ()


def _look_at(lines: Iterator[str]) -> _FirstLines:
    """The lines among which the names of columns are."""
    first: list[str] = []
    size = 0
    try:
        for line in islice(lines, _LINES_LOOKED_AT):
            first.append(line)
            size += len(line)
            if size > _CHARACTERS_OF_TITLES:
                break
    except UnreadableFile as error:
        return _FirstLines(first, error)
    return _FirstLines(first)


@dataclass(frozen=True)
class _TableStart:
    """Where a table begins in its file.

    Attributes
    ----------
    delimiter : of the cells
    n_above : lines above the one that names the columns
    above : their text, such as the account and the period above a bank's bookings
    """

    delimiter: str
    n_above: int = 0
    above: str = ''


def _find_header(file: FileToRead, lines: Sequence[str]) -> _TableStart:
    """Where the table of a file begins, by the file's first lines."""
    first = lines[0] if lines else ''
    named = _NAMED_DELIMITER.fullmatch(first)
    if named is not None:
        # Excel's first line, which is not a row.
        return _TableStart(named[1], n_above=1)
    usual = _delimiter_of(file, first)
    # The lines above may have no separator, or others.
    others = _DELIMITERS.replace(usual, '') if _is_comma_separated(file) else ''
    for delimiter in (usual, *others):
        n_above = _lines_above(lines, delimiter)
        if n_above:
            return _TableStart(delimiter, n_above, ''.join(lines[:n_above]).strip())
    return _TableStart(usual)


def _lines_above(lines: Sequence[str], delimiter: str) -> int:
    """How many lines are above the one that names the columns.

    A file with a cell of several lines among the first has none above.
    """
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return 0
    return rows_above_header(rows) if len(rows) == len(lines) > 1 else 0


def _rows_with_values(
    lines: Iterable[str], delimiter: str, first: int = 1
) -> Iterator[NumberedRow]:
    """The rows of a table that have a value, the header among them.

    `first` is the number of the first line in the file.

    Raises UnreadableFile for a quotation mark that makes one cell of several lines that are none.
    """
    lines_of_row: list[str] = []

    def noted() -> Iterator[str]:
        for line in lines:
            lines_of_row.append(line)
            yield line

    rows = csv.reader(noted(), delimiter=delimiter)
    number = first
    try:
        for row in rows:
            if len(lines_of_row) > 1:
                _check_quotes(lines_of_row, delimiter, number)
            if any(cell.strip() for cell in row):
                yield NumberedRow(row, number)
            lines_of_row.clear()
            number = rows.line_num + first
    except csv.Error as error:
        raise UnreadableFile(f'line {rows.line_num + first - 1}: {error}') from error


def _check_quotes(lines: Sequence[str], delimiter: str, number: int) -> None:
    """Raise UnreadableFile for a row of several lines that a stray quotation mark has joined.

    `number` is the first line's number. Within one line, such a mark does no harm.
    """
    try:
        next(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise UnreadableFile(
            f'line {number}: a quotation mark joins {len(lines)} lines to a cell, and is not '
            f'closed as it should be ({error}): close it, or write it twice in quotation marks'
        ) from error


def parquet_documents(file: FileToRead) -> Iterator[Document]:
    """The documents of a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file.path) as table:
            _check_unpacked(file.path, table.metadata)
            rows = _parquet_rows(table)
            yield from FileTable(file, table.schema_arrow.names).documents(rows)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition('\n')[0]
        raise UnreadableFile(f'not a complete Parquet file ({reason})') from error


def _check_unpacked(path: Path, metadata: Any) -> None:
    """Raise UnreadableFile for a file with a group of rows that unpacks to too much.

    What a file says of itself may be wrong; then pyarrow finds less than it was told, and refuses.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = max((group.total_byte_size for group in groups), default=0)
    if unpacked > FREE_BYTES + MAX_RATIO * path.stat().st_size:
        raise UnreadableFile(f'it unpacks to {human_size(unpacked)}, too much for a table')


def _parquet_rows(table: Any) -> Iterator[NumberedRow]:
    rows = count(1)
    for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
        columns = [column.to_pylist(maps_as_pydicts='lossy') for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield NumberedRow(values, row=next(rows))


def json_documents(file: FileToRead) -> Iterator[Document]:
    """The documents of a JSON file: a list of records, or records by their docids.

    Raises UnreadableFile for any other JSON, such as settings: a record is an object with one of
    `TEXT_COLUMNS`, or with the fields that are asked for.
    """
    text = read_text(file)
    try:
        value = parse_json(text)
    except ValueError as error:
        text = _without_comments(text)
        try:
            value = parse_json(text)
        except ValueError:
            raise UnreadableFile(f'not JSON ({error})') from error
    records: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        records = list(value.items())
    elif isinstance(value, list):
        records = [('', record) for record in value]
    if not records or not all(_is_record(record, file.fields) for _, record in records):
        raise UnreadableFile('it holds no records of documents', WITHOUT_RECORDS)
    docids = _Docids(file)
    for (identifier, record), line in zip(records, _lines_of_items(text), strict=True):
        row = _Row(distinct_names(record), list(record.values()))
        yield row.document(docids, file.fields or TEXT_COLUMNS, identifier).at_line(line)


def _without_comments(text: str) -> str:
    """JSON without comments and commas at ends, as settings of editors have; its lines stay."""
    return _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    """Quoted text unchanged; only the line ends of anything else."""
    return match[0] if match[0].startswith('"') else '\n' * match[0].count('\n')


def _lines_of_items(text: str) -> list[int]:
    """The line, from 1, at which each item of a JSON list begins, or each key of an object.

    The text is a list or an object that has been parsed.
    """
    begin = _ITEMS_BEGIN.search(text)
    if begin is None:
        return []
    is_object = begin[0] == '{'
    lines = []
    line = 1 + text.count('\n', 0, begin.end())
    counted = begin.end()
    position = _end_of_separators(text, begin.end())
    while text[position] not in ']}':
        line += text.count('\n', counted, position)
        counted = position
        lines.append(line)
        _, position = _JSON.raw_decode(text, position)
        if is_object:
            _, position = _JSON.raw_decode(text, _end_of_separators(text, position))
        position = _end_of_separators(text, position)
    return lines


def _end_of_separators(text: str, position: int) -> int:
    """Where the next value or bracket of JSON begins, at or behind a position."""
    separators = _SEPARATORS.match(text, position)
    return position if separators is None else separators.end()


def _is_record(value: Any, fields: Sequence[str]) -> bool:
    """Whether a JSON value is a record of a document."""
    if not isinstance(value, Mapping):
        return False
    return any(isinstance(value.get(name), str) for name in fields or TEXT_COLUMNS)


def _text_lines(file: FileToRead) -> Iterator[str]:
    """The lines of a file with their ends. Raises UnreadableFile for a file that is not text."""
    first = next(_raw_lines(file.path), b'')
    if is_utf_16(first) or _CARRIAGE_RETURN.search(first):
        yield from StringIO(read_text(file))
        return
    encoding = encoding_of_lines(_raw_lines(file.path))
    file.note_encoding('' if encoding == 'utf-8' else encoding)
    for number, raw in enumerate(_raw_lines(file.path), 1):
        yield _decoded(raw, number, encoding)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their ends. Raises UnreadableFile for a damaged one."""
    try:
        with open_binary(path) as stream:
            for _, raw in numbered_bytes(stream):
                yield raw
    except (InputError, OSError) as error:
        raise UnreadableFile(str(error)) from error


def _decoded(raw: bytes, number: int, encoding: str) -> str:
    """A line as text, by its number. Raises UnreadableFile for bytes of another encoding."""
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f'line {number} is not valid {encoding} ({error.reason}): save the file as UTF-8'
        ) from error


def _is_comma_separated(file: FileToRead) -> bool:
    return has_suffix_or_packed(file.path.name, COMMA_SEPARATED)


def _delimiter_of(file: FileToRead, header: str) -> str:
    """The separator of a table's cells: a tab, or the most frequent candidate in its header."""
    if not _is_comma_separated(file):
        return '\t'
    names_alone = re.sub(r'"[^"]*"', '', header)
    return max(_DELIMITERS, key=names_alone.count)


class NumberedRow(NamedTuple):
    """The values of a row, and its location.

    Attributes
    ----------
    values : of its columns
    line : of the file at which it begins, from 1; 0 where the file has none
    row : its number, from 1, in a file without lines; 0 for others
    """

    values: Sequence[Any]
    line: int = 0
    row: int = 0


class _Docids:
    """The docids of a file's documents, each of which is used once.

    Parameters
    ----------
    file : whose documents
    """

    def __init__(self, file: FileToRead) -> None:
        self._file = file
        self._given: set[str] = set()
        self._count = 0

    def next(self, identifier: str) -> str:
        """The docid of the next document; its number if the document has no identifier."""
        self._count += 1
        docid = self._file.numbered_docid(self._count)
        if identifier.strip():
            own = self._file.docid_of(identifier.strip())
            if own not in self._given:
                docid = own
        self._given.add(docid)
        return docid


class _Row:
    """A row or a record.

    Parameters
    ----------
    names : of its columns, each another one
    values : in their order; None and '' for none
    """

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self._values: dict[str, Any] = {}
        for number, value in enumerate(values):
            if value is None or value == '':
                continue
            name = names[number].strip() if number < len(names) else ''
            self._values[name or f'column {number + 1}'] = value

    def document(
        self,
        docids: _Docids,
        text_columns: Sequence[str],
        identifier: str = '',
        title_name: str = '',
    ) -> Document:
        """The document of the row.

        Parameters
        ----------
        docids : of the file
        text_columns : the columns that are its text; a row without them has a line for each column
        identifier : of the row, if none of its columns has one
        title_name : the column that is its title, and stays a field; '' for the column `title`,
            which is also the title of a row without a value in it

        Raises ValueError for a value that no field can have.
        """
        values = dict(self._values)
        own_name = _first_of(values, DOCID_KEYS)
        # An identifier of another kind, such as a number with a point, stays a field.
        if own_name is not None and _is_identifier(values[own_name]):
            identifier = str(values.pop(own_name))
        docid = docids.next(identifier)
        title = _text_of(self._values.get(title_name))
        if not title and TITLE_KEY not in text_columns:
            title = _text_of(_pop(values, TITLE_KEY))
        texts = [_text_of(_pop(values, name)) for name in text_columns]
        text = '\n\n'.join(part for part in texts if part)
        if not text:
            text = _named_cells(values, but=title_name if title else '')
        typed = {name: _typed(value) for name, value in values.items()}
        return Document(docid, text, title, plain_fields(name_date(typed)))


def _named_cells(values: Mapping[str, Any], but: str) -> str:
    """A line 'name: value' for each cell, without the title's unless it is the only one."""
    shown = {name: value for name, value in values.items() if name != but} or values
    return '\n'.join(f'{name}: {_text_of(value)}' for name, value in shown.items())


class FileTable:
    """A table whose columns have names.

    Parameters
    ----------
    file : that holds it
    names : of the columns
    """

    def __init__(self, file: FileToRead, names: Sequence[str]) -> None:
        self._file = file
        if len(names) > MAX_FIELDS:
            raise UnreadableFile(
                f'it has {len(names):,} columns, at most {MAX_FIELDS:,} are allowed'
            )
        self._names = distinct_names(names)
        known = {name.strip().lower() for name in names}
        for field in file.fields:
            if field.lower() not in known:
                shown = ', '.join(names)[:80]
                raise UnreadableFile(f"it has no column '{field}', but {shown}")
        if file.is_alone and file.title_column and file.title_column.lower() not in known:
            shown = ', '.join(names)[:80]
            raise UnreadableFile(f"it has no column '{file.title_column}', but {shown}")

    def documents(self, rows: Iterable[NumberedRow]) -> Iterator[Document]:
        """The documents of the rows, in their order."""
        docids = _Docids(self._file)
        remaining = iter(rows)
        first = _read_first(remaining)
        text_columns = self._text_columns()
        title_name = self._title_name(first.rows, text_columns)
        for row in chain(first.rows, remaining):
            document = _Row(self._names, row.values).document(
                docids, text_columns, title_name=title_name
            )
            yield document.at_line(row.line) if row.line else document.at_row(row.row)
        if first.error is not None:
            raise first.error

    def _text_columns(self) -> Sequence[str]:
        """The columns that are the text of a row; none: all columns are."""
        if self._file.fields:
            return self._file.fields
        present = {name.lower() for name in self._names} & {TITLE_KEY, *TEXT_COLUMNS}
        # A list of stock has a description beside the article, number and shelf of each thing.
        return () if present == {DESCRIPTION} else TEXT_COLUMNS

    def _title_name(self, rows: Sequence[NumberedRow], text_columns: Sequence[str]) -> str:
        """The column that is the title of rows; '' if a column says so, or has their text."""
        chosen = self._file.title_column
        named = {name.lower() for name in self._names}
        if chosen.lower() in named - {''}:
            return next(name for name in self._names if name.lower() == chosen.lower())
        if self._file.fields or named & {TITLE_KEY, *text_columns}:
            return ''
        return title_column(self._names, [row.values for row in rows])


@dataclass(frozen=True)
class _FirstRows:
    """The first rows of a table, and what reading the one behind them raised."""

    rows: Sequence[NumberedRow]
    error: Exception | None


def _read_first(rows: Iterator[NumberedRow]) -> _FirstRows:
    """The rows that decide which column is the title."""
    first: list[NumberedRow] = []
    size = 0
    try:
        for row in islice(rows, _ROWS_OF_TITLES):
            first.append(row)
            size += sum(len(value) for value in row.values if isinstance(value, str))
            if size > _CHARACTERS_OF_TITLES:
                break
    except Exception as error:
        # The documents of the rows before it come first.
        return _FirstRows(first, error)
    return _FirstRows(first, None)


def distinct_names(names: Iterable[str]) -> list[str]:
    """The names of columns, where another one has a name with their number: 'tag', 'tag_3'."""
    distinct: list[str] = []
    for number, name in enumerate(names, 1):
        stripped = name.strip()
        if stripped and stripped in distinct:
            stripped = f'{stripped}_{number}'
        distinct.append(stripped)
    return distinct


def _first_of(values: Iterable[str], names: Iterable[str]) -> str | None:
    """The first of some names that the table has, in the table's spelling; None for none."""
    for wanted in names:
        for name in values:
            if name.lower() == wanted.lower():
                return name
    return None


def _pop(values: dict[str, Any], name: str) -> Any:
    """Take the value of a name, in any case of letters; None for none."""
    written = _first_of(values, (name,))
    return None if written is None else values.pop(written)


def _is_identifier(value: Any) -> bool:
    """Whether a value can be a docid: text, or an integer."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _text_of(value: Any) -> str:
    """A value as text; '' for none, and for bytes. The texts of a list are joined."""
    if value is None or isinstance(value, bytes):
        return ''
    if isinstance(value, list):
        return '\n'.join(text for text in map(_text_of, value) if text)
    return str(value).strip()


def _typed(value: Any) -> Any:
    """A value for a field: text may be a number or a truth value; bytes are not a value."""
    if isinstance(value, str):
        return value_of_text(value)
    if isinstance(value, bytes):
        return None
    return value if _is_plain(value) else str(value)


def _is_plain(value: Any) -> bool:
    is_number = isinstance(value, (bool, int, float, Decimal))
    return is_number or isinstance(value, (list, dict)) or hasattr(value, 'isoformat')

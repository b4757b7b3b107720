"""The cells of an OpenDocument spreadsheet (.ods) as the sheet shows them.

Its XML is read row by row. LibreOffice writes equal neighbours once, with their number.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO
from xml.etree import ElementTree

from pyserini_repbert.collection.files.pdf_text import NeedsPasswordError

_MOST_COLUMNS = 16_384  # that LibreOffice has
_MOST_EQUAL_ROWS = 1_000
_NAMESPACE = 'urn:oasis:names:tc:opendocument:xmlns:'
_OFFICE = f'{{{_NAMESPACE}office:1.0}}'
_TABLE = f'{{{_NAMESPACE}table:1.0}}'
_TEXT = f'{{{_NAMESPACE}text:1.0}}'
_CELLS = (f'{_TABLE}table-cell', f'{_TABLE}covered-table-cell')
# Of an encrypted file, the content is no XML.
_ENCRYPTED = b'encryption-data'
_MOST_MANIFEST = 1_000_000  # bytes
_NUMBER = re.compile(r'-?\d[\d.,]{0,60}')
_SPACES_OF_NUMBERS = re.compile(r"(?<=\d)[\s'’](?=\d)")


@dataclass(frozen=True)
class ReadSheet:
    """A sheet of a workbook, of any format.

    Attributes
    ----------
    name : of the sheet
    rows : its rows, each as its number, from 1, and its cells
    """

    name: str
    rows: Iterable[tuple[int, list[str]]]


def read_open_sheets(stream: IO[bytes]) -> Iterator[ReadSheet]:
    """The sheets of a spreadsheet.

    Raises NeedsPasswordError if it is encrypted, and the errors of `zipfile` and `ElementTree` if
    it is damaged.
    """
    with zipfile.ZipFile(stream) as archive:
        _check_encryption(archive)
        with archive.open('content.xml') as content:
            yield from _sheets(content)


def _check_encryption(archive: zipfile.ZipFile) -> None:
    if 'META-INF/manifest.xml' not in archive.namelist():
        return
    with archive.open('META-INF/manifest.xml') as manifest:
        if _ENCRYPTED in manifest.read(_MOST_MANIFEST):
            raise NeedsPasswordError('it needs a password')


def _sheets(content: IO[bytes]) -> Iterator[ReadSheet]:
    name = ''
    rows: list[tuple[int, list[str]]] = []
    number = 1
    # A cell may hold tables.
    depth = 0
    for event, element in ElementTree.iterparse(content, ('start', 'end')):
        is_end = event == 'end'
        if element.tag == f'{_TABLE}table':
            depth += -1 if is_end else 1
            if is_end and depth == 0:
                yield ReadSheet(name, rows)
            elif depth == 1 and not is_end:
                name = element.get(f'{_TABLE}name', '')
                rows = []
                number = 1
        elif is_end and depth == 1 and element.tag == f'{_TABLE}table-row':
            n_rows = _repeated(element, 'rows')
            cells = _cells_of_row(element)
            if cells:
                for copy in range(min(n_rows, _MOST_EQUAL_ROWS)):
                    rows.append((number + copy, cells))
            number += n_rows
            element.clear()


def _cells_of_row(row: ElementTree.Element) -> list[str]:
    """The cells of a row up to the last one with a value."""
    cells: list[str] = []
    n_empty = 0
    for cell in row:
        if cell.tag not in _CELLS:
            continue
        n_cells = _repeated(cell, 'columns')
        value = _shown_value(cell)
        if not value:
            n_empty += n_cells
            continue
        n_before = len(cells) + n_empty
        if n_before >= _MOST_COLUMNS:
            break
        cells += [''] * n_empty
        cells += [value] * min(n_cells, _MOST_COLUMNS - n_before)
        n_empty = 0
    return cells


def _repeated(element: ElementTree.Element, what: str) -> int:
    """How many equal rows or columns an element stands for."""
    number = element.get(f'{_TABLE}number-{what}-repeated', '1')
    return max(1, int(number)) if number.isdecimal() and len(number) <= 10 else 1


def _shown_value(cell: ElementTree.Element) -> str:
    """A cell as the sheet shows it: numbers with a point, and dates as ISO dates."""
    kind = cell.get(f'{_OFFICE}value-type', '')
    # Comments stand in `annotation`, which is beside the paragraphs.
    paragraphs = [_text_of(paragraph) for paragraph in cell.findall(f'{_TEXT}p')]
    shown = ' '.join(' '.join(paragraphs).split())
    if kind == 'boolean':
        return cell.get(f'{_OFFICE}boolean-value', shown).upper()
    if kind == 'date':
        stated = cell.get(f'{_OFFICE}date-value', shown)
        return stated.replace('T', ' ').removesuffix(' 00:00:00')
    value = cell.get(f'{_OFFICE}value', '')
    if kind in ('float', 'currency') and value:
        return _shown_number(float(value), shown)
    if kind == 'percentage' and value:
        return f'{_shown_number(float(value) * 100, shown)}%'
    return shown


def _text_of(paragraph: ElementTree.Element) -> str:
    """The text of a paragraph; an element for several spaces or for a line's end is a space."""
    texts = [paragraph.text or '']
    for element in paragraph:
        inner = _text_of(element)
        texts += [inner or ' ', element.tail or '']
    return ''.join(texts)


def _shown_number(value: float, shown: str) -> str:
    """A number with as many decimals as the sheet shows, whose language decides its signs.

    A number that starts with 0, such as a postcode, is as it is shown.
    """
    if shown.isdecimal() and shown.startswith('0'):
        return shown
    digits = _NUMBER.search(_SPACES_OF_NUMBERS.sub('', shown))
    if digits is not None:
        for decimal_sign, other in (('.', ','), (',', '.')):
            plain = digits[0].replace(other, '').replace(decimal_sign, '.')
            if plain.count('.') <= 1 and _rounds_to(abs(value), plain.strip('-.')):
                sign = '-' if value < 0 else ''
                return f'{sign}{plain.strip("-.")}'
    return f'{value:.15g}'


def _rounds_to(value: float, plain: str) -> bool:
    """Whether a number is the one that is shown, with its decimals."""
    decimals = len(plain.partition('.')[2])
    return abs(value - float(plain)) <= 0.5000001 * 10.0**-decimals

"""Tables as Markdown and CSV; HTML pages from templates in which every text is escaped."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.files import StrPath, atomic_file

if TYPE_CHECKING:
    from jinja2 import Environment


_SHORTEST_RULE = 3  # dashes


def markdown(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    is_padded: bool = True,
    has_numbers: bool = True,
) -> str:
    """A Markdown table. Bars in text are escaped.

    Parameters
    ----------
    header, rows : the texts of the cells
    is_padded : whether blanks align the columns, for readers of the source
    has_numbers : whether columns are aligned to the right, all but the first
    """
    lines = [_escape_bars(line) for line in (header, *rows)]
    widths = _column_widths(lines) if is_padded else [0] * len(header)
    rule = ['-' * max(width, _SHORTEST_RULE) for width in widths]
    if has_numbers:
        rule[1:] = [dashes[:-1] + ':' for dashes in rule[1:]]
    padded = [_pad(line, widths, has_numbers) for line in lines]
    padded.insert(1, rule)
    return '\n'.join(f'| {" | ".join(line)} |' for line in padded)


def _escape_bars(cells: Sequence[str]) -> list[str]:
    return [' '.join(str(cell).split('\n')).replace('|', '\\|') for cell in cells]


def _column_widths(lines: Sequence[Sequence[str]]) -> list[int]:
    widths = [_SHORTEST_RULE] * len(lines[0])
    for line in lines:
        widths = [max(width, len(cell)) for width, cell in zip(widths, line, strict=True)]
    return widths


def _pad(cells: Sequence[str], widths: Sequence[int], has_numbers: bool) -> list[str]:
    padded: list[str] = []
    for cell, width in zip(cells, widths, strict=True):
        is_right = has_numbers and bool(padded)
        padded.append(cell.rjust(width) if is_right else cell.ljust(width))
    return padded


def percent(value: float, base: float) -> str:
    """The change from `base` in whole percent, with its sign: '+8%'; '' if `base` is 0."""
    if not base:
        return ''
    return f'{100 * (value - base) / base:+.0f}%'


def write_csv(path: StrPath, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write comma-separated values, atomically."""
    with atomic_file(path) as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(header)
        writer.writerows(rows)


def page(template: str, **values: Any) -> str:
    """The page of `resources/templates/TEMPLATE.html.j2` for these values."""
    return _environment().get_template(f'{template}.html.j2').render(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(RESOURCES / 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

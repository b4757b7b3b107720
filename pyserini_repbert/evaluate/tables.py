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


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with aligned columns: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(3, *(len(row[i]) for row in [header, *cells])) for i in range(len(header))]
    rule = ['-' * widths[0], *('-' * (width - 1) + ':' for width in widths[1:])]

    def line(row: Sequence[str]) -> str:
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        return f'| {" | ".join([row[0].ljust(widths[0]), *others])} |'

    return '\n'.join([line(header), line(rule), *map(line, cells)])


def percent(value: float, base: float) -> str:
    """The change from `base` to `value` in whole percent, with its sign: '+8%'; '' where `base`
    is 0.
    """
    return f'{100 * (value - base) / base:+.0f}%' if base else ''


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

"""The papers' tables as printed, with the status of each cell.

A cell was measured here, was rehearsed, or is missing, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.data.yaml_files import read_yaml
from pyserini_repbert.evaluate import tables
from pyserini_repbert.regression.runner import Status
from pyserini_repbert.regression.schema import ResourceOrigin


class Known(StrEnum):
    """The status of a published figure.

    Of several conditions' figures, the first of these counts.
    """

    FAILED = 'failed'
    MEASURED = 'measured'
    RECORDED = 'recorded'
    REHEARSED = 'rehearsed'
    OPEN = 'not run'
    NEVER = 'unavailable'
    OTHER = 'other system'


_BEST_FIRST = list(Known)
_KNOWN = {
    Status.PASS: Known.MEASURED,
    Status.WITHIN: Known.MEASURED,
    Status.FAIL: Known.FAILED,
    Status.RECORDED: Known.RECORDED,
    Status.REHEARSED: Known.REHEARSED,
    Status.NOT_RUN: Known.OPEN,
}
# The origin of a missing resource -> the status of a figure that needs it; the last one counts.
_OUT_OF_REACH = {
    ResourceOrigin.UNPUBLISHED: Known.NEVER,
    ResourceOrigin.OTHER_SYSTEM: Known.OTHER,
}
_SIGNS = {
    Known.MEASURED: '✓',
    Known.FAILED: '✗',
    Known.REHEARSED: '○',
    Known.OPEN: '…',
    Known.NEVER: '—',
    Known.OTHER: '·',
    Known.RECORDED: '',
}
LEGEND = (
    'A cell is the published figure and what is known of it: ✓ measured here, ✗ measured and '
    'different; ○ rehearsed: its commands ran from download to score on stand-in data; '
    "… not run; — unavailable; · another's system, which this package does not have. A figure "
    "without a sign was taken on the source's own machine."
)


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Attributes
    ----------
    cells : its path in the list of published figures
    columns : last part of a cell's path -> heading
    """

    title: str
    cells: str
    columns: Mapping[str, str]
    rows: Sequence[str]

    def path(self, row: str, column: str) -> str:
        """A cell's path in the list of published figures; a table of one row names no row."""
        return '/'.join(part for part in (self.cells, row, column) if part)


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure; an empty cell of a table where `published` is ''.

    Attributes
    ----------
    published : as printed
    measured : '' if nothing was measured
    why : the missing resource, or the failure
    commands : that measure it
    """

    published: str = ''
    known: Known = Known.OPEN
    measured: str = ''
    why: str = ''
    commands: Sequence[str] = ()

    @property
    def text(self) -> str:
        """'0.304 ✓ 0.3038'."""
        if not self.published:
            return self.measured
        parts = (self.published, _SIGNS[self.known], self.measured)
        return ' '.join(part for part in parts if part)


@dataclass(frozen=True)
class Row:
    """A row of a grid."""

    name: str
    cells: Sequence[PublishedFigure]

    @property
    def has_figures(self) -> bool:
        """Whether one of its cells is a published figure."""
        return any(cell.published for cell in self.cells)


@dataclass(frozen=True)
class Grid:
    """A table of a paper, with the status of its figures."""

    table: Table
    rows: Sequence[Row]


@cache
def papers_tables() -> list[Table]:
    """The tables of the four papers."""
    return [Table(**values) for values in read_yaml(RESOURCES / 'tables.yaml').value]


def make_grids(data: Mapping[str, Any]) -> list[Grid]:
    """The tables for which a report has scores, each with the rows that have some."""
    cells = _cells_by_path(data)
    grids = []
    for table in papers_tables():
        rows = [_best_row(cells, table, name) for name in table.rows]
        rows = [row for row in rows if row.has_figures]
        if rows:
            grids.append(Grid(table, rows))
    return grids


def _cells_by_path(data: Mapping[str, Any]) -> dict[str, list[PublishedFigure]]:
    """A cell for each score, by its path in the list of published figures."""
    cells: dict[str, list[PublishedFigure]] = {}
    for file in data['files']:
        for condition in file['conditions']:
            for score in condition['scores']:
                # This project's own figures have no path.
                if score['cell']:
                    cells.setdefault(score['cell'], []).append(_make_figure(condition, score))
    return cells


def _best_row(cells: Mapping[str, Sequence[PublishedFigure]], table: Table, name: str) -> Row:
    """A row of a table. If a figure has several cells, the one with the best status counts."""
    best = []
    for column in table.columns:
        candidates = cells.get(table.path(name, column), [PublishedFigure()])
        best.append(min(candidates, key=lambda cell: _BEST_FIRST.index(cell.known)))
    return Row(name, best)


def _make_figure(condition: Mapping[str, Any], score: Mapping[str, Any]) -> PublishedFigure:
    known = _KNOWN[Status(score['status'])]
    why = condition['why'] if known is Known.FAILED else ''
    if known in (Known.REHEARSED, Known.OPEN):
        why = 'needs ' + ', '.join(absent['what'] for absent in condition['missing'])
        for origin, known_of_origin in _OUT_OF_REACH.items():
            absent_of_origin = _select_missing(condition, origin)
            if absent_of_origin:
                known = known_of_origin
                why = '; '.join(f'{absent["what"]}, {absent["get"]}' for absent in absent_of_origin)
    return PublishedFigure(
        published=score['expected'],
        known=known,
        measured=format_score(score['measured']),
        why=why,
        commands=condition['commands'],
    )


def _select_missing(
    condition: Mapping[str, Any], origin: ResourceOrigin
) -> list[Mapping[str, str]]:
    """What a condition lacks of an origin."""
    return [absent for absent in condition['missing'] if absent.get('origin') == origin]


def format_score(measured: float | None) -> str:
    """A measured score to four digits; '' if nothing was measured."""
    if measured is None:
        return ''
    return f'{measured:.4f}'


def as_markdown(data: Mapping[str, Any]) -> list[str]:
    """A heading, a grid and the reasons for each table."""
    parts = []
    for grid in make_grids(data):
        header = ['', *grid.table.columns.values()]
        lines = []
        for row in grid.rows:
            lines.append([row.name, *(cell.text for cell in row.cells)])
        parts.append(f'### {grid.table.title}')
        parts.append(tables.markdown(header, lines, is_padded=False))
        parts += _reasons(grid.rows, Known.NEVER)
        parts += _reasons(grid.rows, Known.OTHER)
    return parts


def _reasons(rows: Iterable[Row], known: Known) -> list[str]:
    """Why cells are known no better, each reason once, after the sign and the rows that have it."""
    rows_by_reason: dict[str, list[str]] = {}
    for row in rows:
        for cell in row.cells:
            if cell.known is known:
                rows_by_reason.setdefault(cell.why, []).append(row.name)
    return [
        f'{_SIGNS[known]} {", ".join(dict.fromkeys(names))}: {reason}.'
        for reason, names in rows_by_reason.items()
    ]

"""The papers' tables as printed, each cell marked as measured here, rehearsed, or missing and
why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.data.yaml_files import read_yaml
from pyserini_repbert.regression.layout import Origin
from pyserini_repbert.regression.runner import Status


class Known(StrEnum):
    """What is known of a published figure; of several conditions' figures, the first of these
    counts.
    """

    FAILED = 'failed'
    MEASURED = 'measured'
    RECORDED = 'recorded'
    REHEARSED = 'rehearsed'
    OPEN = 'not run'
    NEVER = 'cannot be had'


_KNOWN = {
    Status.PASS: Known.MEASURED,
    Status.WITHIN: Known.MEASURED,
    Status.FAIL: Known.FAILED,
    Status.RECORDED: Known.RECORDED,
    Status.REHEARSED: Known.REHEARSED,
    Status.NOT_RUN: Known.OPEN,
}
_SIGNS = {
    Known.MEASURED: '✓',
    Known.FAILED: '✗',
    Known.REHEARSED: '○',
    Known.OPEN: '…',
    Known.NEVER: '—',
    Known.RECORDED: '',
}
LEGEND = (
    'A cell is the published figure and what is known of it: ✓ measured here, ✗ measured and '
    'another; ○ rehearsed: its '
    'commands ran from download to score on stand-ins of their input; … not run; — cannot be had. '
    'A figure without a '
    "sign was taken on the source's own machine."
)


class Table(NamedTuple):
    """A table of a paper."""

    title: str
    cells: str  # its path in the list of published figures; a cell's path is `cells/row/column`
    columns: Mapping[str, str]  # last part of a cell's path -> heading
    rows: Sequence[str]


class Cell(NamedTuple):
    """A published figure, or an empty place of a table where `published` is ''."""

    published: str = ''  # as printed
    known: Known = Known.OPEN
    measured: str = ''  # '' where nothing was measured
    why: str = ''  # what is missing, or what failed
    commands: Sequence[str] = ()  # that measure it

    @property
    def text(self) -> str:
        """'0.304 ✓ 0.3038'."""
        return ' '.join(
            filter(
                None, (self.published, _SIGNS[self.known] if self.published else '', self.measured)
            )
        )


Grid = list[tuple[str, list[Cell]]]  # (row, its cells)


@cache
def tables() -> list[Table]:
    """The tables of the four papers."""
    return [Table(**values) for values in read_yaml(RESOURCES / 'tables.yaml').value]


def grids(data: Mapping[str, Any]) -> list[tuple[Table, Grid]]:
    """The tables of which a report's data have scores, each with those of its rows that have."""
    cells: dict[str, list[Cell]] = {}
    for file in data['files']:
        for condition in file['conditions']:
            for score in condition['scores']:
                cells.setdefault(score['cell'], []).append(_cell(condition, score))
    cells.pop('', None)  # this project's own figures
    return [(table, rows) for table in tables() if (rows := _grid(cells, table))]


def _grid(cells: Mapping[str, Sequence[Cell]], table: Table) -> Grid:
    best_first = list(Known)
    rows = []
    for row in table.rows:
        paths = ['/'.join(filter(None, (table.cells, row, column))) for column in table.columns]
        best = [
            min(cells.get(path, [Cell()]), key=lambda cell: best_first.index(cell.known))
            for path in paths
        ]
        if any(cell.published for cell in best):
            rows.append((row, best))
    return rows


def _cell(condition: Mapping[str, Any], score: Mapping[str, Any]) -> Cell:
    known = _KNOWN[Status(score['status'])]
    measured = '' if score['measured'] is None else f'{score["measured"]:.4f}'
    why = condition['why'] if known is Known.FAILED else ''
    if known in (Known.REHEARSED, Known.OPEN):
        why = 'needs ' + ', '.join(one['what'] for one in condition['missing'])
        if never := [
            one for one in condition['missing'] if one.get('origin') == Origin.UNPUBLISHED
        ]:
            known = Known.NEVER
            why = '; '.join(f'{one["what"]}, {one["get"]}' for one in never)
    return Cell(score['expected'], known, measured, why, condition['commands'])


def markdown(data: Mapping[str, Any]) -> list[str]:
    """A heading, a grid and the reasons for each table."""
    parts = []
    for table, rows in grids(data):
        lines = [
            '|  | ' + ' | '.join(table.columns.values()) + ' |',
            '| --- |' + ' --: |' * len(table.columns),
        ]
        lines += [
            f'| {row} | ' + ' | '.join(cell.text for cell in cells) + ' |' for row, cells in rows
        ]
        never: dict[str, dict[str, None]] = {}  # why cells cannot be had -> their rows
        for row, cell in [
            (row, cell) for row, cells in rows for cell in cells if cell.known is Known.NEVER
        ]:
            never.setdefault(cell.why, {})[row] = None
        reasons = [f'— {", ".join(names)}: {reason}.' for reason, names in never.items()]
        parts += [f'### {table.title}', '\n'.join(lines), *reasons]
    return parts

"""The papers' tables as printed, each cell marked as measured here, rehearsed, or missing and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pyserini_repbert.pages import page
from pyserini_repbert.regression.layout import Origin
from pyserini_repbert.regression.runner import Status


class Known(StrEnum):
    """What is known of a published figure."""

    MEASURED = 'measured'
    FAILED = 'failed'
    REHEARSED = 'rehearsed'
    OPEN = 'not run'
    NEVER = 'cannot be had'
    RECORDED = 'recorded'


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Attributes
    ----------
    cells : its path in the list of published figures; a cell's path is `cells/row/column`
    columns : last part of a cell's path -> heading
    """

    title: str
    cells: str
    columns: Mapping[str, str]
    rows: Sequence[str]


@dataclass(frozen=True)
class Cell:
    """A published figure, or an empty place of a table where `published` is ''.

    Attributes
    ----------
    published : the figure as printed
    measured : the figure measured here, as a text; '' for none
    why : what is missing, or what failed
    commands : the commands that measure it
    """

    published: str = ''
    known: Known = Known.OPEN
    measured: str = ''
    why: str = ''
    commands: Sequence[str] = ()


_FIRST = ('BM25', 'doc2query', 'DeepCT', 'docTTTTTquery', 'RepBERT')
_SAME = {name: name for name in _FIRST}
_EPIC = [f'EPIC+{first}{r}' for first in ('BM25', 'docTTTTTquery') for r in ('', ' r=2000', ' r=1000')]
_DUO = [f'+monoBERT+duoBERT_{method}' for method in ('MAX', 'MIN', 'SUM', 'BINARY', 'SUM+TCP')]
_CEDR = [
    'BM25', 'SDM', 'TREC-Best', 'ConvKNRM', 'Vanilla BERT', 'PACRR (BERT ft)', 'CEDR-PACRR', 'KNRM (BERT ft)',
    'CEDR-KNRM', 'DRMM (BERT ft)', 'CEDR-DRMM',
]  # fmt: skip
TABLES = (
    Table(
        'RepBERT, Table 1: first stages on MS MARCO passages',
        'repbert/table1_first_stage',
        {'mrr10_dev': 'MRR@10 dev', 'mrr10_test': 'MRR@10 test', 'r1000_dev': 'R@1000 dev', 'latency': 'ms a query'},
        [*_FIRST, 'BM25+BERT-Large'],
    ),
    Table(
        'RepBERT, Table 2: MRR@10 of the first hits reranked by BERT-Large',
        'repbert/table2_bert_large_rerank_mrr10_dev',
        _SAME,
        ['5', '10', '50', '500', '1000'],
    ),
    Table('RepBERT, Table 3: MRR@10, row and column interleaved', 'repbert/table3_interleave_mrr10_dev', _SAME, _FIRST),
    Table('RepBERT, Table 4: R@1000, row and column interleaved', 'repbert/table4_interleave_r1000_dev', _SAME, _FIRST),
    Table(
        'Multi-Stage Document Ranking with BERT, Table 1: MRR@10 on MS MARCO passages',
        'multi_stage_bert/table1_msmarco_mrr10',
        {'dev': 'dev', 'eval': 'eval'},
        ['BM25 (Microsoft)', 'IRNet', 'monoBERT (Jan 2019)', 'BM25 (Anserini)', '+monoBERT', *_DUO],
    ),
    Table(
        'Multi-Stage Document Ranking with BERT, Table 2: MAP on TREC CAR',
        'multi_stage_bert/table2_trec_car_map',
        {'': 'MAP'},
        ['BM25 (Anserini)', '+monoBERT', _DUO[0], _DUO[2], _DUO[3]],
    ),
    Table(
        'EPIC, Table 1: MS MARCO passages, dev',
        'epic/table1_msmarco_dev',
        {'mrr10': 'MRR@10', 'latency': 'ms a query'},
        [*_FIRST[:4], *_EPIC],
    ),
    Table(
        'CEDR, Table 1: Robust04 and the Web tracks 2012 to 2014',
        'cedr',
        {
            'robust04_p20': 'Robust04 P@20',
            'robust04_ndcg20': 'Robust04 nDCG@20',
            'webtrack_ndcg20': 'WebTrack nDCG@20',
            'webtrack_err20': 'WebTrack ERR@20',
        },
        _CEDR,
    ),
)
_BEST_FIRST = (Known.FAILED, Known.MEASURED, Known.RECORDED, Known.REHEARSED, Known.OPEN, Known.NEVER)
_SIGNS = {
    Known.MEASURED: '✓', Known.FAILED: '✗', Known.REHEARSED: '○', Known.OPEN: '…', Known.NEVER: '—', Known.RECORDED: '',
}  # fmt: skip
_KNOWN: Mapping[str, Known] = {
    Status.PASS: Known.MEASURED,
    Status.WITHIN: Known.MEASURED,
    Status.FAIL: Known.FAILED,
    Status.RECORDED: Known.RECORDED,
    Status.REHEARSED: Known.REHEARSED,
}
_COLOURS = {Known.FAILED: '#e05d44', Known.MEASURED: '#4c1', Known.REHEARSED: '#007ec6', Known.OPEN: '#9f9f9f'}
_CHARACTER, _PADDING = 6.6, 10  # pixels of a badge's character and of its ends, generous so that no text is cut off
LEGEND = (
    'A cell is the published figure and what is known of it: ✓ measured here, ✗ measured and another; ○ rehearsed: its '
    'commands ran from download to score on stand-ins of their input; … not run; — cannot be had. A figure without a '
    "sign was taken on the source's own machine."
)


def grid(data: Mapping[str, Any], table: Table) -> list[tuple[str, list[Cell]]]:
    """(row, its cells) for the rows of a table of which a report's data have scores."""
    found: dict[str, list[Cell]] = {}
    for cell, condition, score in _scores(data):
        found.setdefault(cell, []).append(_cell(condition, score))
    rows = []
    for row in table.rows:
        paths = ['/'.join(filter(None, (table.cells, row, column))) for column in table.columns]
        cells = [min(found.get(path, [Cell()]), key=lambda own: _BEST_FIRST.index(own.known)) for path in paths]
        if any(own.published for own in cells):
            rows.append((row, cells))
    return rows


def grids(data: Mapping[str, Any]) -> list[tuple[Table, list[tuple[str, list[Cell]]]]]:
    """The tables of which a report has scores, each with its rows."""
    return [(table, rows) for table in TABLES if (rows := grid(data, table))]


def counts(data: Mapping[str, Any]) -> dict[Known, int]:
    """The number of cells of the papers' tables, by what is known of them."""
    cells = [cell for _, rows in grids(data) for _, own in rows for cell in own if cell.published]
    return {known: sum(cell.known is known for cell in cells) for known in Known}


def markdown(data: Mapping[str, Any]) -> list[str]:
    """A heading, a grid and the reasons for each table."""
    parts = []
    for table, rows in grids(data):
        lines = ['|  | ' + ' | '.join(table.columns.values()) + ' |', '| --- |' + ' --: |' * len(table.columns)]
        lines += [f'| {row} | ' + ' | '.join(text(cell) for cell in cells) + ' |' for row, cells in rows]
        parts += [f'### {table.title}', '\n'.join(lines), *_reasons(rows)]
    return parts


def text(cell: Cell) -> str:
    """A cell's text: '0.304 ✓ 0.3038'."""
    return ' '.join(filter(None, (cell.published, _SIGNS[cell.known] if cell.published else '', cell.measured)))


def badge(data: Mapping[str, Any]) -> str:
    """An SVG: red if a figure failed, else green if one is measured, else blue if one is rehearsed, else grey."""
    found = counts(data)
    total = sum(found.values()) - found[Known.RECORDED]
    said = [f'{found[known]} {known}' for known in (Known.MEASURED, Known.FAILED, Known.REHEARSED) if found[known]]
    message = f'{", ".join(said) or "none run"} of {total}'
    colour = next((colour for known, colour in _COLOURS.items() if found[known]), _COLOURS[Known.OPEN])
    label = 'published figures'
    widths = [round(len(text) * _CHARACTER + _PADDING) for text in (label, message)]
    return page('badge', label=label, message=message, colour=colour, widths=widths)


def _reasons(rows: Sequence[tuple[str, Sequence[Cell]]]) -> list[str]:
    """Why cells cannot be had, each reason once with its cells' rows."""
    why: dict[str, dict[str, None]] = {}
    for row, cells in rows:
        for cell in cells:
            if cell.known is Known.NEVER:
                why.setdefault(cell.why, {})[row] = None
    return [f'— {", ".join(names)}: {reason}.' for reason, names in why.items()]


def _scores(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    for file in data['files']:
        for condition in file['conditions']:
            for score in condition['scores']:
                if score['cell']:
                    yield score['cell'], condition, score


def _cell(condition: Mapping[str, Any], score: Mapping[str, Any]) -> Cell:
    known = _KNOWN.get(score['status'], Known.OPEN)
    measured = '' if score['measured'] is None else f'{score["measured"]:.4f}'
    why = condition['why'] if known is Known.FAILED else ''
    if known in (Known.REHEARSED, Known.OPEN):
        why = 'needs ' + ', '.join(one['what'] for one in condition['missing'])
        if never := [one for one in condition['missing'] if one.get('origin') == Origin.UNPUBLISHED]:
            known, why = Known.NEVER, '; '.join(f'{one["what"]}, {one["get"]}' for one in never)
    return Cell(score['expected'], known, measured, why, condition['commands'])

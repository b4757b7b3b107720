"""The report of a run: as data, and from the same data as Markdown and HTML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.evaluate import tables
from pyserini_repbert.regression import grids
from pyserini_repbert.regression.runner import Outcome, Score, Status
from pyserini_repbert.regression.schema import Expected, Regression

_COMMANDS = (
    'curl ',
    'pip ',
    'hf ',
    'python ',
)  # what a way to get a resource begins with, if it is a command
_UNMEASURED = (Status.NOT_RUN.value, Status.REHEARSED.value)
HEADER = ['condition', 'measure', 'expected', 'measured', 'status', 'source']
_OF_MODELS = (' weights', ' tokenizer', ' config', ' precision')
# beside the regression files: 'FILE CONDITION' of all that `make rehearsal` ran
_REHEARSED = 'rehearsed.json'


def as_data(
    outcomes: Sequence[tuple[Regression, Sequence[Outcome]]],
    environment: dict[str, str],
    hidden: dict[str, str],
) -> dict[str, Any]:
    """The report as JSON values.

    A condition that was not run, but is in the list of rehearsed ones beside its regression's file,
    is REHEARSED. `environment` is a `fingerprint`; `hidden` has the texts that stand for folders of
    this machine.
    """

    def plain(text: str) -> str:
        for folder, sign in hidden.items():
            text = text.replace(folder, sign)
        return text

    files = []
    for regression, results in outcomes:
        record = Path(regression.path).parent / _REHEARSED
        rehearsed = (
            json.loads(record.read_text(encoding='utf-8'))['rehearsed'] if record.is_file() else []
        )
        conditions = [
            _condition(one, f'{regression.name} {one.condition.name}' in rehearsed, plain)
            for one in results
        ]
        files.append(
            {
                'file': Path(regression.path).name,
                'title': regression.title,
                'conditions': conditions,
            }
        )
    return {'environment': environment, 'totals': totals(files), 'files': files}


def _condition(outcome: Outcome, is_rehearsed: bool, plain: Callable[[str], str]) -> dict[str, Any]:
    status = (
        Status.REHEARSED if is_rehearsed and outcome.status is Status.NOT_RUN else outcome.status
    )
    missing = [
        {
            'name': one.resource.name,
            'what': one.resource.what,
            'size': one.size,
            'get': plain(one.get),
            'origin': one.resource.origin.value,
        }
        for one in outcome.missing
    ]
    return {
        'name': outcome.condition.name,
        'status': status.value,
        'why': plain(outcome.why),
        'seconds': round(outcome.seconds, 1),
        'remembered': outcome.remembered,
        'missing': missing,
        'commands': [plain(command) for command in outcome.commands],
        'scores': [_score(score, status) for score in outcome.scores],
        'fingerprint': {plain(name): plain(value) for name, value in outcome.fingerprint.items()},
    }


def _score(score: Score, condition: Status) -> dict[str, Any]:
    expected = score.expected
    tolerance = score.expected.tolerance
    status = condition if score.status is Status.NOT_RUN else score.status
    return {
        'measure': measure_text(expected),
        'expected': expected.text,
        'measured': score.measured,
        'status': status.value,
        'source': source_text(expected),
        'cell': expected.cell,
        'tolerance': tolerance.value if tolerance else None,
        'reason': tolerance.reason if tolerance else '',
    }


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several reports' data as one: for each condition the last report that ran it counts, else
    the last one.
    """
    files: dict[str, dict[str, Any]] = {}
    environment: dict[str, str] = {}
    for report in reports:
        environment |= report['environment']
        for file in report['files']:
            known = files.setdefault(
                file['file'], {'file': file['file'], 'title': file['title'], 'conditions': {}}
            )
            for one in file['conditions']:
                before = known['conditions'].get(one['name'])
                if (
                    before is None
                    or one['status'] not in _UNMEASURED
                    or before['status'] in _UNMEASURED
                ):
                    known['conditions'][one['name']] = one
    listed = [
        file | {'conditions': list(file['conditions'].values())}
        for _, file in sorted(files.items())
    ]
    return {'environment': environment, 'totals': totals(listed), 'files': listed}


def totals(files: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Scores by status, in the report's order."""
    counts = Counter(
        score['status']
        for file in files
        for entry in file['conditions']
        for score in entry['scores']
    )
    return {status.value: counts[status.value] for status in Status}


def measure_text(expected: Expected) -> str:
    """'MRR@10', with the row of the table where there is one and the unit of a recorded figure."""
    where = ', '.join(
        f'{name} {value}' for name, value in expected.where.items() if name != 'measure'
    )
    return (
        expected.measure
        + (f' ({where})' if where else '')
        + (f' ({expected.unit})' if expected.unit else '')
    )


def source_text(expected: Expected) -> str:
    """The source with row and column, and the machine of a recorded figure; or with the commit."""
    source = expected.source
    if source.commit:
        return f'{source.text}, commit {source.commit}'
    machine = f'; {source.hardware}' if expected.unit and source.hardware else ''
    return f'{source.text}: {expected.place}{machine}'


def markdown(data: dict[str, Any]) -> str:
    """The report as Markdown: the papers' tables, totals, a table for each file, failures, and
    what is missing.
    """
    rows = [
        [file['file'], *(str(value) for value in totals([file]).values())] for file in data['files']
    ]
    rows.append(['**all**', *(f'**{value}**' for value in data['totals'].values())])
    parts = ['# Regressions', _INTRODUCTION]
    if of_papers := grids.markdown(data):
        parts += ["## The papers' tables", grids.LEGEND, *of_papers]
    parts += ['## All scores', tables.markdown(['scores', *data['totals']], rows)]
    for file in data['files']:
        cells = [
            [one['name'], *_cells(score, one)]
            for one in file['conditions']
            for score in one['scores']
        ]
        parts += [
            f'## {file["file"]}',
            file['title'] + '.',
            _left_aligned(HEADER, cells),
            *_reasons(file),
        ]
    header = ['resource', 'needed by', 'what', 'size', 'how to get it']
    parts += [
        '## Missing',
        'What the conditions that were not run need.',
        _left_aligned(header, _missing(data)),
    ]
    listed = [f'- {name}: {value}' for name, value in _environment(data)]
    return '\n\n'.join([*parts, '## Environment', '\n'.join(listed)]) + '\n'


def as_html(data: dict[str, Any]) -> str:
    """The report as one HTML page that loads nothing else; the commands unfold."""
    values = data | {
        'environment': _environment(data),
        'tables': grids.grids(data),
        'legend': grids.LEGEND,
    }
    return tables.page('regressions', header=HEADER, cells=_cells, reasons=_reasons, **values)


_INTRODUCTION = (
    'Written by `python -m pyserini_repbert.regression --all --report regressions/REPORT.md`; the '
    'entries '
    'are those of the YAML files.\n\nPASS: all published digits agree. PASS within tolerance: the '
    'YAML file says how '
    'much and why. FAIL: also a gain beyond the tolerance. REHEARSED: not run for want of its '
    'input, but its commands '
    'ran to a score, which means nothing, on stand-ins of it (`make rehearsal`). RECORDED: a '
    "figure of the source's "
    'own hardware or of a kind that nothing here measures, compared with nothing.'
)


def _cells(score: dict[str, Any], condition: dict[str, Any]) -> list[str]:
    measured = '' if score['measured'] is None else f'{score["measured"]:.4f}'
    status = score['status']
    if status in _UNMEASURED and condition['missing']:
        status += f': {", ".join(one["name"] for one in condition["missing"])}'
    return [score['measure'], score['expected'], measured, status, score['source']]


def _reasons(file: dict[str, Any]) -> list[str]:
    return [
        f'{one["status"]} {one["name"]}: {one["why"]}' for one in file['conditions'] if one['why']
    ]


def _missing(data: dict[str, Any]) -> list[list[str]]:
    """A row for each resource that is not here: name, files that need it, what it is, its size,
    how to get it.
    """
    wanted: dict[tuple[str, str], list[str]] = {}
    files: dict[tuple[str, str], dict[str, None]] = {}
    for file in data['files']:
        for one in [one for condition in file['conditions'] for one in condition['missing']]:
            key = (one['name'], one['get'])
            get = f'`{one["get"]}`' if one['get'].startswith(_COMMANDS) else one['get']
            wanted[key] = [one['what'], one['size'], get]
            files.setdefault(key, {})[file['file'].removesuffix('.yaml')] = None
    return [[key[0], ', '.join(files[key]), *row] for key, row in wanted.items()]


def _environment(data: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of the machine's part, then the checkpoints and precisions of all
    conditions, each once.
    """
    conditions = [condition for file in data['files'] for condition in file['conditions']]
    pairs = dict.fromkeys(
        pair for condition in conditions for pair in condition['fingerprint'].items()
    )
    return [*data['environment'].items(), *(pair for pair in pairs if pair[0].endswith(_OF_MODELS))]


def _left_aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        list(header),
        ['---'] * len(header),
        *([cell.replace('|', '\\|') for cell in row] for row in rows),
    ]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)

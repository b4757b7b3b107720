"""The report of a run: as data, and from the same data as Markdown and HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.evaluate import tables
from pyserini_repbert.regression import counts, grids
from pyserini_repbert.regression.resources import MissingResource
from pyserini_repbert.regression.runner import Outcome, Score, Status
from pyserini_repbert.regression.schema import Expected, Regression

HEADER = ['condition', 'measure', 'expected', 'measured', 'status', 'source', 'its evaluator']
# What a way to get a resource begins with, if it is a command.
_COMMANDS = ('curl ', 'pip ', 'hf ', 'python ')
_UNMEASURED = (Status.NOT_RUN.value, Status.REHEARSED.value)
# The ends of the names in a fingerprint that are of checkpoints.
_OF_MODELS = (' weights', ' tokenizer', ' config', ' precision')
# Beside the regression files: 'FILE CONDITION' of all that `make rehearsal` ran.
_REHEARSED = 'rehearsed.json'
_INTRODUCTION = (
    'Written by `python -m pyserini_repbert.regression --all --report regressions/REPORT.md`; the '
    'entries come from the YAML files.\n\n'
    'PASS: all published digits agree. PASS within tolerance: the YAML file says how much and why. '
    'FAIL: also a gain beyond the tolerance. REHEARSED: not run, because its input is missing, but '
    'its commands ran to a score, which means nothing, on stand-ins of it (`make rehearsal`). '
    "RECORDED: a figure of the source's own hardware or of a kind that nothing here measures, "
    'compared with nothing.'
)


@dataclass(frozen=True)
class RegressionOutcome:
    """The outcomes of a regression's conditions."""

    regression: Regression
    outcomes: Sequence[Outcome]


class _Writer:
    """Writes outcomes as JSON values, with placeholders for this machine's folders."""

    def __init__(self, hidden: Mapping[str, str]) -> None:
        self._hidden = hidden

    def _hide(self, text: str) -> str:
        for folder, sign in self._hidden.items():
            text = text.replace(folder, sign)
        return text

    def file_data(self, result: RegressionOutcome) -> dict[str, Any]:
        regression = result.regression
        rehearsed = _read_rehearsed(regression)
        conditions = []
        for outcome in result.outcomes:
            status = outcome.status
            is_rehearsed = f'{regression.name} {outcome.condition.name}' in rehearsed
            if status is Status.NOT_RUN and is_rehearsed:
                status = Status.REHEARSED
            conditions.append(self._condition_data(outcome, status))
        return {
            'file': Path(regression.path).name,
            'title': regression.title,
            'conditions': conditions,
        }

    def _condition_data(self, outcome: Outcome, status: Status) -> dict[str, Any]:
        fingerprint = {
            self._hide(name): self._hide(value) for name, value in outcome.fingerprint.items()
        }
        return {
            'name': outcome.condition.name,
            'status': status.value,
            'why': self._hide(outcome.why),
            'seconds': round(outcome.seconds, 1),
            'need': outcome.need.value,
            'remembered': outcome.remembered,
            'missing': [self._missing_data(absent) for absent in outcome.missing],
            'commands': [self._hide(command) for command in outcome.commands],
            'scores': [_score_data(score, status) for score in outcome.scores],
            'fingerprint': fingerprint,
        }

    def _missing_data(self, missing: MissingResource) -> dict[str, Any]:
        resource = missing.resource
        return {
            'name': resource.name,
            'what': resource.what,
            'size': missing.size,
            'get': self._hide(missing.get),
            'origin': resource.origin.value,
        }


def as_data(
    results: Iterable[RegressionOutcome], environment: dict[str, str], hidden: Mapping[str, str]
) -> dict[str, Any]:
    """The report as JSON values.

    A condition that was not run, but is in the list of rehearsed ones beside its regression's file,
    is REHEARSED. `environment` is a `fingerprint`; `hidden` has the placeholders for this machine's
    folders.
    """
    writer = _Writer(hidden)
    files = [writer.file_data(result) for result in results]
    totals = counts.count_scores(files)
    return {'environment': environment, 'totals': totals, 'files': files}


def _read_rehearsed(regression: Regression) -> list[str]:
    path = Path(regression.path).parent / _REHEARSED
    if not path.is_file():
        return []
    names: list[str] = json.loads(path.read_text(encoding='utf-8'))['rehearsed']
    return names


def _score_data(score: Score, condition: Status) -> dict[str, Any]:
    expected = score.expected
    tolerance = expected.tolerance
    status = condition if score.status is Status.NOT_RUN else score.status
    return {
        'measure': measure_text(expected),
        'expected': expected.text,
        'measured': score.measured,
        'status': status.value,
        'source': source_text(expected),
        'evaluator': evaluator_text(expected),
        'cell': expected.cell,
        'tolerance': tolerance.value if tolerance else None,
        'reason': tolerance.reason if tolerance else '',
    }


def merge_reports(reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The data of several reports, merged.

    For each condition, the last report that ran it counts; if none did, the last report.
    """
    titles: dict[str, str] = {}
    conditions: dict[str, dict[str, Any]] = {}
    environment: dict[str, str] = {}
    for report in reports:
        environment |= report['environment']
        for file in report['files']:
            titles.setdefault(file['file'], file['title'])
            known = conditions.setdefault(file['file'], {})
            for condition in file['conditions']:
                before = known.get(condition['name'])
                if before is None or not _is_measured(before) or _is_measured(condition):
                    known[condition['name']] = condition
    files = []
    for name in sorted(titles):
        conditions_of_file = list(conditions[name].values())
        files.append({'file': name, 'title': titles[name], 'conditions': conditions_of_file})
    totals = counts.count_scores(files)
    return {'environment': environment, 'totals': totals, 'files': files}


def _is_measured(condition: Mapping[str, Any]) -> bool:
    return condition['status'] not in _UNMEASURED


def measure_text(expected: Expected) -> str:
    """'MRR@10', with the table's row if there is one, and a recorded figure's unit."""
    text = expected.measure
    where = [f'{name} {value}' for name, value in expected.where.items() if name != 'measure']
    if where:
        text += f' ({", ".join(where)})'
    if expected.unit:
        text += f' ({expected.unit})'
    return text


def source_text(expected: Expected) -> str:
    """The source with row and column, and the machine of a recorded figure; or with the commit."""
    source = expected.source
    if source.commit:
        return f'{source.text}, commit {source.commit}'
    machine = f'; {source.hardware}' if expected.unit and source.hardware else ''
    return f'{source.text}: {expected.row_and_column}{machine}'


def evaluator_text(expected: Expected) -> str:
    """How the source computed a score: program, gain, cut and ties."""
    if expected.unit:
        return 'none: a time or a size'
    if expected.evaluator is not None:
        return expected.evaluator.text
    return 'this project' if expected.source.commit else 'not stated'


def as_markdown(data: Mapping[str, Any]) -> str:
    """The report as Markdown.

    It has the papers' tables, the kinds of evidence, what conditions need, a table for each file,
    failures, and missing inputs.
    """
    parts = ['# Regressions', _INTRODUCTION]
    papers_tables = grids.as_markdown(data)
    if papers_tables:
        parts += ["## The papers' tables", grids.LEGEND, *papers_tables]
    parts += counts.as_markdown(data)
    for file in data['files']:
        lines = []
        for condition in file['conditions']:
            for score in condition['scores']:
                lines.append([condition['name'], *_cells(score, condition)])
        parts += [f'## {file["file"]}', file['title'] + '.', _text_table(HEADER, lines)]
        parts += _reasons(file)
    header = ['resource', 'needed by', 'what', 'size', 'how to get it']
    environment = [f'- {name}: {value}' for name, value in _environment(data)]
    parts += [
        '## Missing',
        'What the conditions that were not run need.',
        _text_table(header, _missing_lines(data)),
        '## Environment',
        '\n'.join(environment),
    ]
    return '\n\n'.join(parts) + '\n'


def as_html(data: Mapping[str, Any]) -> str:
    """The report as one HTML page that loads nothing else, with commands that unfold."""
    return tables.page(
        'regressions',
        others=counts.count_scores(data['files'], counts.OTHERS),
        guards=counts.count_scores(data['files'], counts.GUARDS),
        grids=grids.make_grids(data),
        legend=grids.LEGEND,
        files=data['files'],
        header=HEADER,
        cells=_cells,
        reasons=_reasons,
        environment=_environment(data),
    )


def _text_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return tables.markdown(header, lines, is_padded=False, has_numbers=False)


def _cells(score: Mapping[str, Any], condition: Mapping[str, Any]) -> list[str]:
    """The cells of a score after the condition's name, under `HEADER`."""
    measured = grids.format_score(score['measured'])
    status = score['status']
    if status in _UNMEASURED and condition['missing']:
        names = ', '.join(absent['name'] for absent in condition['missing'])
        status += f': {names}'
    # Reports of earlier versions say nothing of evaluators.
    evaluator = score.get('evaluator', '')
    return [score['measure'], score['expected'], measured, status, score['source'], evaluator]


def _reasons(file: Mapping[str, Any]) -> list[str]:
    return [
        f'{condition["status"]} {condition["name"]}: {condition["why"]}'
        for condition in file['conditions']
        if condition['why']
    ]


def _missing_lines(data: Mapping[str, Any]) -> list[list[str]]:
    """A row for each resource that does not exist.

    Its name, the files that need it, its description, its size, and how to get it.
    """
    last: dict[tuple[str, str], Mapping[str, str]] = {}
    files: dict[tuple[str, str], list[str]] = {}
    for file in data['files']:
        for condition in file['conditions']:
            for absent in condition['missing']:
                key = (absent['name'], absent['get'])
                last[key] = absent
                files.setdefault(key, []).append(file['file'].removesuffix('.yaml'))
    lines = []
    for key, absent in last.items():
        needed_by = ', '.join(dict.fromkeys(files[key]))
        get = absent['get']
        if get.startswith(_COMMANDS):
            get = f'`{get}`'
        lines.append([absent['name'], needed_by, absent['what'], absent['size'], get])
    return lines


def _environment(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) of what scores depend on, each once.

    The machine's part, then the checkpoints and precisions of all conditions.
    """
    pairs = list(data['environment'].items())
    of_models: dict[tuple[str, str], None] = {}
    for file in data['files']:
        for condition in file['conditions']:
            for name, value in condition['fingerprint'].items():
                if name.endswith(_OF_MODELS):
                    of_models[name, value] = None
    return [*pairs, *of_models]

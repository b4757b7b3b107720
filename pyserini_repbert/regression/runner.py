"""Runs conditions and judges their scores: PASS, PASS within tolerance, FAIL, NOT RUN."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression import resources
from pyserini_repbert.regression.environment import condition_fingerprint, recorded
from pyserini_repbert.regression.resources import Missing
from pyserini_repbert.regression.schema import Condition, Expected
from pyserini_repbert.regression.workspace import CommandFailedError, Workspace, remember, remembered

_SLACK = 1e-9  # for rounding errors of floating point


class Status(StrEnum):
    """The outcome of a score or a condition.

    REHEARSED: not run, but its commands ran on stand-ins of what it needs, to a score that means nothing. RECORDED: a
    figure of the source's own machine, compared with nothing.
    """

    PASS = 'PASS'
    WITHIN = 'PASS within tolerance'
    FAIL = 'FAIL'
    REHEARSED = 'REHEARSED'
    NOT_RUN = 'NOT RUN'
    RECORDED = 'RECORDED'


_WORST_FIRST = (Status.FAIL, Status.NOT_RUN, Status.WITHIN, Status.PASS)


class Score(NamedTuple):
    """An expected score and the measured one, None if there is none."""

    expected: Expected
    status: Status
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a condition.

    Attributes
    ----------
    scores : the expected ones, then the recorded ones
    missing : resources for want of which it was not run
    why : the reason for a missing score, or for which it was left out; '' for none
    seconds : that it took, now or when its remembered result was made
    remembered : whether the scores are an earlier run's
    commands : as a user would type them
    fingerprint : checkpoints, precision and settings behind its scores (`environment.condition_fingerprint`)
    """

    condition: Condition
    status: Status
    scores: Sequence[Score]
    missing: Sequence[Missing] = ()
    why: str = ''
    seconds: float = 0.0
    remembered: bool = False
    commands: Sequence[str] = field(default_factory=list)
    fingerprint: Mapping[str, str] = field(default_factory=dict)


def judge(expected: Expected, measured: float) -> Status:
    """PASS if all published digits agree, WITHIN the tolerance, else FAIL: a gain beyond the tolerance is one, too."""
    if math.isnan(measured):
        return Status.FAIL
    difference = abs(measured - expected.value)
    if difference <= expected.rounding + _SLACK:
        return Status.PASS
    tolerance = expected.tolerance.value if expected.tolerance else 0.0
    return Status.WITHIN if difference <= tolerance + _SLACK else Status.FAIL


def commands_of(condition: Condition, workspace: Workspace) -> list[str]:
    """Every command of a condition, as a user would type it: its builds', its own, and the evaluation."""
    listed = [*_own_commands(condition, workspace), *_evaluation(condition)]
    return [workspace.shown(command) for command in listed]


def _own_commands(condition: Condition, workspace: Workspace) -> list[str]:
    return [own for build in workspace.builds(condition.needs) for own in build.commands] + [*condition.commands]


def run_condition(condition: Condition, workspace: Workspace, heavy_too: bool = False) -> Outcome:
    """Run a condition, or say what is missing; a failure of its commands is its outcome, never raised.

    Parameters
    ----------
    heavy_too : run it even if it is marked as heavy
    """
    commands = commands_of(condition, workspace)
    recorded = [Score(own, Status.RECORDED) for own in condition.recorded]

    def outcome(status: Status, why: str = '', absent: Sequence[Missing] = ()) -> Outcome:
        scores = [Score(own, status) for own in condition.expected]
        return Outcome(condition, status, [*scores, *recorded], absent, why, commands=commands)

    if not condition.expected:
        return outcome(Status.RECORDED)
    needed = [workspace.regression.resources[name] for name in workspace.needed(condition.needs)]
    found = [resources.missing(resource, workspace.places) for resource in needed]
    absent = [one for one in found if one is not None]
    if absent:
        return outcome(Status.NOT_RUN, absent=absent)
    if condition.heavy and not heavy_too:
        return outcome(Status.NOT_RUN, f'takes {condition.heavy}: --all runs it')
    start = time.perf_counter()
    try:
        measured, seconds, fingerprint = _measured(condition, workspace)
    except PyseriniRepbertError as error:
        return outcome(Status.FAIL, str(error))
    scores = []
    for number, expected in enumerate(condition.expected):
        value = measured[number]
        scores.append(Score(expected, Status.FAIL if value is None else judge(expected, value), value))
    status = next(one for one in _WORST_FIRST if any(score.status is one for score in scores))
    why = 'no score was measured' if any(score.measured is None for score in scores) else ''
    taken = time.perf_counter() - start if seconds is None else seconds
    return Outcome(condition, status, [*scores, *recorded], (), why, taken, seconds is not None, commands, fingerprint)


def run_all(
    work: Sequence[tuple[Condition, Workspace]],
    jobs: int = 1,
    heavy_too: bool = False,
    on_outcome: Callable[[Workspace, Outcome], object] | None = None,
) -> list[Outcome]:
    """The outcomes of conditions in their order; `jobs` of them run at a time.

    Parameters
    ----------
    heavy_too : also run conditions that are marked as heavy
    on_outcome : called with each outcome, in the thread that ran it
    """

    def one(pair: tuple[Condition, Workspace]) -> Outcome:
        outcome = run_condition(*pair, heavy_too)
        if on_outcome is not None:
            on_outcome(pair[1], outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, work))


def _evaluation(condition: Condition) -> list[str]:
    if not condition.run:
        return []
    measures = dict.fromkeys(expected.measure for expected in condition.expected)
    return [
        f'python -m pyserini_repbert.evaluate --qrels {condition.qrels} {condition.run} '
        f'--json --quiet --measures {shlex.join(measures)}'
    ]


def _measured(condition: Condition, workspace: Workspace) -> tuple[list[float | None], float | None, Mapping[str, str]]:
    """The measured scores in the order of the expected ones, the seconds of a remembered result, and the fingerprint.

    The seconds are None for a result that was not remembered.
    """
    evaluation = _evaluation(condition)
    wanted = [[own.measure, sorted(own.where.items())] for own in condition.expected]
    asked = [*condition.commands, *evaluation, condition.table, json.dumps(wanted)]
    key = workspace.key(asked, condition.needs)
    note = workspace.folder / '.results' / f'{re.sub(r"[^A-Za-z0-9.+_-]", "_", condition.name)}.json'
    known = remembered(note)
    if known and known.get('key') == key and 'fingerprint' in known:
        return known['measured'], known['seconds'], known['fingerprint']
    start = time.perf_counter()
    for name in condition.needs:
        if name in workspace.regression.builds:
            workspace.build(name)
    for command in condition.commands:
        workspace.run(command)
    if condition.run:
        means = _means(workspace.run(evaluation[0]), evaluation[0])
        measured = [_number(means.get(expected.measure)) for expected in condition.expected]
    else:
        measured = [_looked_up(Path(workspace.words(condition.table)[0]), own) for own in condition.expected]
    seconds = time.perf_counter() - start
    ran = (recorded(workspace.words(own)) for own in _own_commands(condition, workspace))
    fingerprint = condition_fingerprint(record for record in ran if record is not None)
    if None not in measured:
        remember(note, {'key': key, 'measured': measured, 'seconds': seconds, 'fingerprint': fingerprint})
    return measured, None, fingerprint


def _means(printed: str, command: str) -> Mapping[str, Any]:
    try:
        return dict(json.loads(printed)['runs'][0]['measures'])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise CommandFailedError(f"'{command}' printed no scores: {printed.strip()[-200:]}") from error


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _looked_up(table: Path, expected: Expected) -> float | None:
    """The column `value`, or the one named after the measure, of the only row that agrees with `where`; else None."""
    if not table.is_file():
        return None
    with open(table, encoding='utf-8', newline='') as stream:
        delimiter = '\t' if table.suffix == '.tsv' else ','
        rows = [row for row in csv.DictReader(stream, delimiter=delimiter) if expected.where.items() <= row.items()]
    try:
        return _number(float(rows[0].get('value', rows[0].get(expected.measure, '')))) if len(rows) == 1 else None
    except (KeyError, ValueError):
        return None

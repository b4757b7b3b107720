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
from typing import NamedTuple

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression.environment import condition_fingerprint
from pyserini_repbert.regression.needs import missing_of
from pyserini_repbert.regression.resources import NeededResource
from pyserini_repbert.regression.schema import Condition, Expected
from pyserini_repbert.regression.workspace import Workspace, remember, remembered

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


class Score(NamedTuple):
    """An expected score and the measured one, None if there is none."""

    expected: Expected
    status: Status
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a condition."""

    condition: Condition
    status: Status
    scores: Sequence[Score]  # the expected ones, then the recorded ones
    commands: Sequence[str]  # as a user would type them
    missing: Sequence[NeededResource] = ()  # for want of which it was not run
    why: str = ''  # a score is missing, or it was left out
    seconds: float = 0.0  # that it took, now or when its remembered result was made
    remembered: bool = False  # the scores are an earlier run's
    fingerprint: Mapping[str, str] = field(default_factory=dict)  # `environment.condition_fingerprint`


class _Measured(NamedTuple):
    scores: Sequence[float | None]  # in the order of the expected ones
    seconds: float
    fingerprint: Mapping[str, str]
    remembered: bool


def judge(expected: Expected, measured: float | None) -> Status:
    """PASS if all published digits agree, WITHIN the tolerance, else FAIL: a gain beyond the tolerance is one, too."""
    if measured is None or math.isnan(measured):
        return Status.FAIL
    difference = abs(measured - expected.value)
    if difference <= expected.rounding + _SLACK:
        return Status.PASS
    tolerance = expected.tolerance.value if expected.tolerance else 0.0
    return Status.WITHIN if difference <= tolerance + _SLACK else Status.FAIL


def commands_of(condition: Condition, workspace: Workspace) -> list[str]:
    """Every command of a condition, as a user would type it: its builds', its own, and the evaluation."""
    evaluation = [_evaluation(condition)] if condition.run else []
    return [workspace.shown(command) for command in [*workspace.commands(condition), *evaluation]]


def run_condition(condition: Condition, workspace: Workspace, heavy_too: bool = False) -> Outcome:
    """Run a condition, or say what is missing; a failure of its commands is its outcome, never raised."""
    commands = commands_of(condition, workspace)
    recorded_scores = [Score(figure, Status.RECORDED) for figure in condition.recorded]

    def without_scores(status: Status, why: str = '', missing: Sequence[NeededResource] = ()) -> Outcome:
        scores = [Score(expected, status) for expected in condition.expected]
        return Outcome(condition, status, [*scores, *recorded_scores], commands, missing, why)

    if not condition.expected:
        return without_scores(Status.RECORDED)
    if missing := missing_of(condition, workspace):
        return without_scores(Status.NOT_RUN, missing=missing)
    if condition.heavy and not heavy_too:
        return without_scores(Status.NOT_RUN, f'takes {condition.heavy}: --all runs it')
    try:
        measured = _measured(condition, workspace)
    except PyseriniRepbertError as error:
        return without_scores(Status.FAIL, str(error))
    pairs = zip(condition.expected, measured.scores, strict=True)
    scores = [Score(expected, judge(expected, value), value) for expected, value in pairs]
    worst_first = (Status.FAIL, Status.WITHIN, Status.PASS)
    status = min((score.status for score in scores), key=worst_first.index)
    why = 'no score was measured' if None in measured.scores else ''
    return Outcome(
        condition, status, [*scores, *recorded_scores], commands, (), why, measured.seconds, measured.remembered,
        measured.fingerprint,
    )  # fmt: skip


def run_all(
    work: Sequence[tuple[Condition, Workspace]],
    jobs: int = 1,
    heavy_too: bool = False,
    on_outcome: Callable[[Workspace, Outcome], object] = lambda workspace, outcome: None,
) -> list[Outcome]:
    """The outcomes of conditions in their order; `jobs` of them run at a time, each in a thread that reports it."""

    def one(pair: tuple[Condition, Workspace]) -> Outcome:
        outcome = run_condition(*pair, heavy_too)
        on_outcome(pair[1], outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, work))


def _evaluation(condition: Condition) -> str:
    measures = dict.fromkeys(expected.measure for expected in condition.expected)
    return (
        f'python -m pyserini_repbert.evaluate --qrels {condition.qrels} {condition.run} '
        f'--json --quiet --measures {shlex.join(measures)}'
    )


def _measured(condition: Condition, workspace: Workspace) -> _Measured:
    """Run the commands and the evaluation, unless a result of the same ones is remembered."""
    wanted = [[expected.measure, sorted(expected.where.items())] for expected in condition.expected]
    evaluation = [_evaluation(condition)] if condition.run else []
    key = workspace.key([*condition.commands, *evaluation, condition.table, json.dumps(wanted)], condition.needs)
    note = workspace.folder / '.results' / f'{re.sub(r"[^A-Za-z0-9.+_-]", "_", condition.name)}.json'
    known = remembered(note)
    if known and known.get('key') == key and 'fingerprint' in known:
        return _Measured(known['measured'], known['seconds'], known['fingerprint'], True)
    start = time.perf_counter()
    for name in condition.needs:
        if name in workspace.regression.builds:
            workspace.build(name)
    for command in condition.commands:
        workspace.run(command)
    if condition.run:
        means = json.loads(workspace.run(evaluation[0]))['runs'][0]['measures']
        scores = [means.get(expected.measure) for expected in condition.expected]
    else:
        table = Path(workspace.words(condition.table)[0])
        scores = [_looked_up(table, expected) for expected in condition.expected]
    seconds = time.perf_counter() - start
    fingerprint = condition_fingerprint(map(workspace.words, workspace.commands(condition)))
    if None not in scores:
        remember(note, {'key': key, 'measured': scores, 'seconds': seconds, 'fingerprint': fingerprint})
    return _Measured(scores, seconds, fingerprint, False)


def _looked_up(table: Path, expected: Expected) -> float | None:
    """The column `value`, or the one named after the measure, of the only row that agrees with `where`; else None."""
    if not table.is_file():
        return None
    with open(table, encoding='utf-8', newline='') as stream:
        lines = csv.DictReader(stream, delimiter='\t' if table.suffix == '.tsv' else ',')
        rows = [row for row in lines if expected.where.items() <= row.items()]
    value = rows[0].get('value', rows[0].get(expected.measure)) if len(rows) == 1 else None
    return float(value) if value else None

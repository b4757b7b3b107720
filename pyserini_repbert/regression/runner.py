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
from pyserini_repbert.regression.environment import condition_fingerprint
from pyserini_repbert.regression.needs import Pair, missing_of
from pyserini_repbert.regression.resources import NeededResource
from pyserini_repbert.regression.schema import Condition, Expected
from pyserini_repbert.regression.workspace import Workspace, remember, remembered

_SLACK = 1e-9  # for rounding errors of floating point


class Status(StrEnum):
    """The outcome of a score or a condition.

    REHEARSED: not run, but its commands ran on stand-ins of what it needs, to a score that means
    nothing. RECORDED: a figure of the source's own machine, compared with nothing.
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
    fingerprint: Mapping[str, str] = field(
        default_factory=dict
    )  # `environment.condition_fingerprint`


def judge(expected: Expected, measured: float | None) -> Status:
    """PASS if all published digits agree, WITHIN the tolerance, else FAIL: a gain beyond the
    tolerance is one, too.
    """
    if measured is None or math.isnan(measured):
        return Status.FAIL
    difference = abs(measured - expected.value)
    if difference <= expected.rounding + _SLACK:
        return Status.PASS
    tolerance = expected.tolerance.value if expected.tolerance else 0.0
    return Status.WITHIN if difference <= tolerance + _SLACK else Status.FAIL


def commands_of(condition: Condition, workspace: Workspace) -> list[str]:
    """Every command of a condition, as a user would type it: its builds', its own, and the
    evaluation.
    """
    commands = [*workspace.commands(condition), *_evaluation(condition)]
    return [shlex.join(workspace.words(command)) for command in commands]


def run_condition(condition: Condition, workspace: Workspace, heavy_too: bool = False) -> Outcome:
    """Run a condition, or say what is missing; a failure of its commands is its outcome, never
    raised.
    """
    commands = commands_of(condition, workspace)
    recorded_scores = [Score(figure, Status.RECORDED) for figure in condition.recorded]

    def without_scores(
        status: Status, why: str = '', missing: Sequence[NeededResource] = ()
    ) -> Outcome:
        scores = [Score(expected, status) for expected in condition.expected]
        return Outcome(condition, status, [*scores, *recorded_scores], commands, missing, why)

    if not condition.expected:
        return without_scores(Status.RECORDED)
    if missing := missing_of(condition, workspace):
        return without_scores(Status.NOT_RUN, missing=missing)
    if condition.heavy and not heavy_too:
        return without_scores(Status.NOT_RUN, f'takes {condition.heavy}: --all runs it')
    try:
        result, is_remembered = _measured(condition, workspace)
    except PyseriniRepbertError as error:
        return without_scores(Status.FAIL, str(error))
    pairs = zip(condition.expected, result['measured'], strict=True)
    scores = [Score(expected, judge(expected, value), value) for expected, value in pairs]
    worst_first = (Status.FAIL, Status.WITHIN, Status.PASS)
    status = min((score.status for score in scores), key=worst_first.index)
    why = 'no score was measured' if None in result['measured'] else ''
    all_scores = [*scores, *recorded_scores]
    seconds = result['seconds']
    depends_on = result['fingerprint']
    return Outcome(
        condition, status, all_scores, commands, (), why, seconds, is_remembered, depends_on
    )


def run_all(
    work: Sequence[Pair],
    jobs: int,
    heavy_too: bool,
    on_outcome: Callable[[Workspace, Outcome], object],
) -> list[Outcome]:
    """The outcomes of conditions in their order; `jobs` of them run at a time, each in a thread
    that reports it.
    """

    def one(pair: Pair) -> Outcome:
        outcome = run_condition(*pair, heavy_too)
        on_outcome(pair[1], outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, work))


def _evaluation(condition: Condition) -> list[str]:
    """The command that evaluates the run; none for a condition with a table."""
    if not condition.run:
        return []
    measures = shlex.join(dict.fromkeys(expected.measure for expected in condition.expected))
    files = f'--qrels {condition.qrels} {condition.run}'
    return [f'python -m pyserini_repbert.evaluate {files} --json --quiet --measures {measures}']


def _measured(condition: Condition, workspace: Workspace) -> tuple[dict[str, Any], bool]:
    """Run the commands and the evaluation, unless a result of the same ones is remembered, which is
    then True.

    The result has 'measured', the scores in the order of the expected ones, None for one that there
    is not; 'seconds'; and 'fingerprint'.
    """
    wanted = [[expected.measure, sorted(expected.where.items())] for expected in condition.expected]
    evaluation = _evaluation(condition)
    key = workspace.key(
        [*condition.commands, *evaluation, condition.table, json.dumps(wanted)], condition.needs
    )
    note = (
        workspace.folder / '.results' / f'{re.sub(r"[^A-Za-z0-9.+_-]", "_", condition.name)}.json'
    )
    known = remembered(note)
    if known and known['key'] == key:
        return known, True
    start = time.perf_counter()
    for build in workspace.builds(condition.needs):
        workspace.build(build)
    for command in condition.commands:
        workspace.run(command)
    if evaluation:
        means = json.loads(workspace.run(evaluation[0]))['runs'][0]['measures']
        scores = [means.get(expected.measure) for expected in condition.expected]
    else:
        table = Path(workspace.words(condition.table)[0])
        scores = [_looked_up(table, expected) for expected in condition.expected]
    seconds = time.perf_counter() - start
    fingerprint = condition_fingerprint(map(workspace.words, workspace.commands(condition)))
    result = {'key': key, 'measured': scores, 'seconds': seconds, 'fingerprint': fingerprint}
    if None not in scores:
        remember(note, result)
    return result, False


def _looked_up(table: Path, expected: Expected) -> float | None:
    """The column `value`, or the one named after the measure, of the only row that agrees with
    `where`; else None.
    """
    if not table.is_file():
        return None
    with open(table, encoding='utf-8', newline='') as stream:
        lines = csv.DictReader(stream, delimiter='\t' if table.suffix == '.tsv' else ',')
        rows = [row for row in lines if expected.where.items() <= row.items()]
    value = rows[0].get('value', rows[0].get(expected.measure)) if len(rows) == 1 else None
    return float(value) if value else None

"""Runs conditions and judges their scores: PASS, PASS within tolerance, FAIL, NOT RUN."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression.environment import condition_fingerprint
from pyserini_repbert.regression.jobs import ConditionJob
from pyserini_repbert.regression.needs import Need
from pyserini_repbert.regression.placeholders import fill
from pyserini_repbert.regression.resources import MissingResource
from pyserini_repbert.regression.schema import Condition, Expected
from pyserini_repbert.regression.workspace import Workspace, read_note, write_note

_SLACK = 1e-9  # for rounding errors of floating point


class Status(StrEnum):
    """The outcome of a score or a condition.

    REHEARSED: not run, but its commands ran on stand-ins of its inputs, up to a meaningless score.
    RECORDED: a figure of the source's own machine, compared with nothing.
    """

    PASS = 'PASS'
    WITHIN = 'PASS within tolerance'
    FAIL = 'FAIL'
    REHEARSED = 'REHEARSED'
    NOT_RUN = 'NOT RUN'
    RECORDED = 'RECORDED'


_WORST_FIRST = (Status.FAIL, Status.WITHIN, Status.PASS)


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
    commands : as a user would type them
    missing : the reasons why it was not run
    why : a score is missing, or the condition was left out
    seconds : that it took, now or when its remembered result was made
    remembered : whether the scores are an earlier run's
    fingerprint : `environment.condition_fingerprint`
    need : what a new checkout needs before it can be run
    """

    condition: Condition
    status: Status
    scores: Sequence[Score]
    commands: Sequence[str]
    missing: Sequence[MissingResource] = ()
    why: str = ''
    seconds: float = 0.0
    remembered: bool = False
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    need: Need = Need.NOTHING


@dataclass(frozen=True, slots=True)
class _Result:
    """What a condition measured.

    Attributes
    ----------
    key : the hash of all that the scores depend on
    measured : in the order of the expected scores; None for one that there is not
    """

    key: str
    measured: list[float | None]
    seconds: float
    fingerprint: dict[str, str]


def judge(expected: Expected, measured: float | None) -> Status:
    """PASS if all published digits agree, WITHIN the tolerance, otherwise FAIL.

    A gain beyond the tolerance is a FAIL, too.
    """
    if measured is None or math.isnan(measured):
        return Status.FAIL
    difference = abs(measured - expected.value)
    if difference <= expected.rounding + _SLACK:
        return Status.PASS
    tolerance = expected.tolerance.value if expected.tolerance else 0.0
    return Status.WITHIN if difference <= tolerance + _SLACK else Status.FAIL


def run_condition(job: ConditionJob, heavy_too: bool = False) -> Outcome:
    """Run a condition, or report what is missing.

    A failure of its commands is its outcome, never raised.
    """
    condition = job.condition
    if not condition.expected:
        return _without_scores(job, Status.RECORDED)
    missing = job.missing()
    if missing:
        return _without_scores(job, Status.NOT_RUN, missing=missing)
    if condition.heavy and not heavy_too:
        return _without_scores(job, Status.NOT_RUN, why=f'takes {condition.heavy}: --all runs it')
    note = _note_path(job)
    try:
        key = _key(job)
        result = _read_result(note, key)
        is_remembered = result is not None
        if result is None:
            result = _measure(job, key)
            if None not in result.measured:
                write_note(note, asdict(result))
    except PyseriniRepbertError as error:
        return _without_scores(job, Status.FAIL, why=str(error))
    return _with_scores(job, result, is_remembered)


def run_all(
    jobs: Sequence[ConditionJob],
    n_threads: int,
    heavy_too: bool,
    on_outcome: Callable[[Workspace, Outcome], object],
) -> list[Outcome]:
    """The outcomes of conditions, in their order.

    Parameters
    ----------
    jobs : the conditions to run
    n_threads : how many of them run at a time
    heavy_too : whether to run those that are left out unless asked for
    on_outcome : called by a condition's thread when the condition has ended
    """

    def run_one(job: ConditionJob) -> Outcome:
        outcome = run_condition(job, heavy_too)
        on_outcome(job.workspace, outcome)
        return outcome

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run_one, jobs))


def _with_scores(job: ConditionJob, result: _Result, is_remembered: bool) -> Outcome:
    """The outcome of a condition that was run, now or before."""
    condition = job.condition
    scores = [
        Score(expected, judge(expected, measured), measured)
        for expected, measured in zip(condition.expected, result.measured, strict=True)
    ]
    return Outcome(
        condition=condition,
        status=min((score.status for score in scores), key=_WORST_FIRST.index),
        scores=[*scores, *_recorded_scores(condition)],
        commands=job.commands(),
        why='no score was measured' if None in result.measured else '',
        seconds=result.seconds,
        remembered=is_remembered,
        fingerprint=result.fingerprint,
        need=job.need(),
    )


def _without_scores(
    job: ConditionJob, status: Status, *, why: str = '', missing: Sequence[MissingResource] = ()
) -> Outcome:
    """The outcome of a condition that measured nothing."""
    condition = job.condition
    scores = [Score(expected, status) for expected in condition.expected]
    return Outcome(
        condition=condition,
        status=status,
        scores=[*scores, *_recorded_scores(condition)],
        commands=job.commands(),
        missing=missing,
        why=why,
        need=job.need(),
    )


def _recorded_scores(condition: Condition) -> list[Score]:
    return [Score(figure, Status.RECORDED) for figure in condition.recorded]


def _note_path(job: ConditionJob) -> Path:
    """Where the result of a condition is remembered."""
    name = re.sub(r'[^A-Za-z0-9.+_-]', '_', job.condition.name)
    return job.workspace.folder / '.results' / f'{name}.json'


def _key(job: ConditionJob) -> str:
    """The hash of all that a condition's scores depend on."""
    condition = job.condition
    wanted = [[score.measure, sorted(score.where.items())] for score in condition.expected]
    parts = [*condition.commands, *job.evaluation(), condition.table, json.dumps(wanted)]
    return job.workspace.key(parts, condition.needs)


def _read_result(note: Path, key: str) -> _Result | None:
    """The remembered result, if it was made from the same inputs."""
    known = read_note(note)
    if not known or known['key'] != key:
        return None
    return _Result(**known)


def _measure(job: ConditionJob, key: str) -> _Result:
    """Run the commands of a condition and its evaluation."""
    condition = job.condition
    workspace = job.workspace
    start = time.perf_counter()
    for build in workspace.builds(condition.needs):
        workspace.build(build)
    for command in condition.commands:
        workspace.run(command)
    scores = _read_scores(job)
    seconds = time.perf_counter() - start
    words = [workspace.words(command) for command in workspace.commands(condition)]
    return _Result(key, scores, seconds, condition_fingerprint(words))


def _read_scores(job: ConditionJob) -> list[float | None]:
    """The scores that the evaluation prints, or those in the condition's table."""
    condition = job.condition
    evaluation = job.evaluation()
    if evaluation:
        printed = json.loads(job.workspace.run(evaluation[0]))
        means = printed['runs'][0]['measures']
        return [means.get(expected.measure) for expected in condition.expected]
    table = Path(fill(condition.table, job.workspace.paths))
    rows = _read_table(table) if table.is_file() else []
    return [_look_up(rows, expected) for expected in condition.expected]


def _read_table(table: Path) -> list[dict[str, Any]]:
    delimiter = '\t' if table.suffix == '.tsv' else ','
    with open(table, encoding='utf-8', newline='') as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def _look_up(rows: Sequence[Mapping[str, Any]], expected: Expected) -> float | None:
    """The score in the only row that agrees with `where`; None without one.

    It is in the column `value`, or in the one named after the measure. Anything but a number is not
    a score.
    """
    fitting = [row for row in rows if expected.where.items() <= row.items()]
    if len(fitting) != 1:
        return None
    value = fitting[0].get('value', fitting[0].get(expected.measure))
    with contextlib.suppress(TypeError, ValueError):
        return float(value)
    return None

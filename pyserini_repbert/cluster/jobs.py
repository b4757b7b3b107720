"""Jobs for workers that can be lost: what a lost worker had is done again by another, a few times."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyserini_repbert.errors import BusyError, ClusterError, MismatchError, PyseriniRepbertError

logger = logging.getLogger(__name__)

TRIES = 5  # of one job, or of starting a worker
PATIENCE = 60.0  # seconds without any worker before a user is told
_TICK = 1.0  # seconds between two looks at the cluster


class Work(Protocol):
    """What a worker opens once and is asked many times: a small frozen value, which goes to the worker's machine."""

    def opened(self, threads: int) -> Callable[[Any], Any]:
        """What answers one argument with one result; it computes with `threads` threads."""


@dataclass(frozen=True)
class Job:
    """One argument for a work.

    Attributes
    ----------
    name : for messages, 'shard 7'
    """

    name: str
    work: Work
    argument: Any


@dataclass(frozen=True)
class Answer:
    """What became of the last question to a worker: a value, an error that it raised, or that it was lost.

    Attributes
    ----------
    lost : why the worker is no more
    """

    worker: str
    value: Any = None
    error: BaseException | None = None
    lost: str | None = None


class Fleet(Protocol):
    """Workers on the machines of a cluster. A worker that was started answers first with the versions that it has."""

    def room(self) -> int:
        """How many workers there is room for now."""

    def start(self, most: int) -> int:
        """Start workers where there is room, until there are `most`; how many were started."""

    def ask(self, worker: str, job: Job) -> None:
        """Give an idle worker a job."""

    def answers(self, seconds: float) -> list[Answer]:
        """What has come, after at most so long."""

    def alive(self, worker: str) -> bool:
        """Whether a worker's machine is part of the cluster."""

    def place(self, worker: str) -> str:
        """The machine that a worker is, or was, on."""

    def needs(self) -> str:
        """What a worker needs of a machine, '4 CPUs' say."""


class Crew:
    """The workers of a fleet, over several calls of `run`: what they have open stays open.

    Parameters
    ----------
    versions : of packages that a worker has to have
    patience : seconds without any worker before a user is told
    """

    def __init__(self, fleet: Fleet, versions: Mapping[str, str], patience: float = PATIENCE) -> None:
        self.fleet, self.versions, self.patience = fleet, versions, patience
        self.idle: dict[str, Work | None] = {}  # with what each has open
        self.busy: dict[str, int] = {}
        self.starting = self.failed_starts = 0
        self._begin((), None)

    def _begin(self, jobs: Sequence[Job], on_done: Callable[[int, Any], object] | None) -> None:
        self.jobs, self.on_done = jobs, on_done
        self.waiting = list(range(len(jobs)))
        self.not_before = [0.0] * len(jobs)
        self.tries = [0] * len(jobs)
        self.done: dict[int, Any] = {}

    def run(self, jobs: Sequence[Job], on_done: Callable[[int, Any], object] | None = None) -> list[Any]:
        """The results of all jobs, in their order.

        Parameters
        ----------
        on_done : called with a job's number and its result, as they come

        Raises
        ------
        ClusterError
            where a job loses its worker `TRIES` times, workers cannot be started, or a worker fails unforeseen
        MismatchError
            where a worker's machine has other versions
        PyseriniRepbertError
            what a worker raised, with its machine
        """
        self._begin(jobs, on_done)
        alone_since = time.monotonic()
        while len(self.done) < len(self.jobs):
            self.starting += self.fleet.start(len(self.jobs) - len(self.done))
            if self.idle or self.busy:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > self.patience:
                self._alone()
                alone_since = time.monotonic()
            self._give()
            for answer in self.fleet.answers(_TICK):
                self._take(answer)
        return [self.done[number] for number in range(len(self.jobs))]

    def _alone(self) -> None:
        if not self.starting:
            raise ClusterError(
                f'no machine of the cluster has had room for a worker for {self.patience:.0f} s: '
                f'one needs {self.fleet.needs()}'
            )
        logger.warning('waiting for the first of %d workers, %s each', self.starting, self.fleet.needs())

    def _give(self) -> None:
        """Jobs to idle workers, to each one of what it has open where there is such a one."""
        for worker, opened in list(self.idle.items()):
            now = time.monotonic()
            if not self.fleet.alive(worker):  # a job that it were given would lose a try
                del self.idle[worker]
                continue
            ready = [number for number in self.waiting if self.not_before[number] <= now]
            if not ready:
                return
            number = next((number for number in ready if self.jobs[number].work == opened), ready[0])
            self.waiting.remove(number)
            del self.idle[worker]
            self.busy[worker] = number
            self.fleet.ask(worker, self.jobs[number])

    def _take(self, answer: Answer) -> None:
        worker, number = answer.worker, self.busy.pop(answer.worker, None)
        if number is None:
            self.starting -= 1
        if answer.lost is not None:
            if number is not None:
                self._again(number, answer.lost, 0)
            elif self.fleet.alive(worker):
                self._not_started(answer.lost)
        elif answer.error is not None:
            if number is None or not isinstance(answer.error, BusyError):
                raise self._placed(answer.error, worker) from answer.error
            self._again(number, str(answer.error), 2.0 ** self.tries[number])  # what a lost worker held is soon free
            self.idle[worker] = self.jobs[number].work
        elif number is None:
            self._compare(answer.value, worker)
            self.failed_starts = 0
            self.idle[worker] = None
        else:
            self.idle[worker] = self.jobs[number].work
            self.done[number] = answer.value
            if self.on_done is not None:
                self.on_done(number, answer.value)

    def _again(self, number: int, why: str, delay: float) -> None:
        self.tries[number] += 1
        name = self.jobs[number].name
        if self.tries[number] >= TRIES:
            raise ClusterError(f'{name} was tried {TRIES} times, and failed with its machine each time: {why}')
        logger.warning('%s is done again: %s', name, why)
        self.not_before[number] = time.monotonic() + delay
        self.waiting.append(number)

    def _not_started(self, why: str) -> None:
        self.failed_starts += 1
        if self.failed_starts >= TRIES:
            raise ClusterError(f'{TRIES} workers one after the other did not start: {why}')

    def _compare(self, found: Mapping[str, str], worker: str) -> None:
        for package, version in self.versions.items():
            if found.get(package) != version:
                raise MismatchError(
                    f'{self.fleet.place(worker)} has {package} {found.get(package, "not at all")}, this machine '
                    f'{version}: install the same version on every machine'
                )

    def _placed(self, error: BaseException, worker: str) -> PyseriniRepbertError:
        """The error with the machine it happened on."""
        where = f' (on {self.fleet.place(worker)})'
        if isinstance(error, PyseriniRepbertError):
            return type(error)(f'{error}{where}', parameters=error.parameters)
        return ClusterError(f'{type(error).__name__}: {error}{where}')

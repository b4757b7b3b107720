"""Jobs for workers that can be lost: the job of a lost worker is given to another, up to `TRIES`
times in all.
"""

from __future__ import annotations

import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

from pyserini_repbert.errors import BusyError, ClusterError, MismatchError, PyseriniRepbertError

logger = logging.getLogger(__name__)

TRIES = 5  # of one job, or of worker starts in a row
PATIENCE = 60.0  # seconds without any worker before an error or a warning
_AHEAD = 2  # jobs taken for each worker, so that none is idle
_TICK = 1.0  # seconds to wait for answers before looking at the cluster again


class WorkerTask(Protocol):
    """A task that a worker opens once and runs for many arguments: a small frozen value, sent to
    the worker.
    """

    def opened(self, threads: int) -> Callable[[Any], Any]:
        """Open the work; returns the function from an argument to a result, which computes with
        `threads` threads.
        """


@dataclass(frozen=True)
class Job:
    """One argument for a work, with a name for messages: 'shard 7'."""

    name: str
    work: WorkerTask
    argument: Any


@dataclass(frozen=True)
class JobResult:
    """The outcome of a worker's last job: a value, the error that it raised, or the reason why
    the worker was lost.
    """

    worker: str
    value: Any = None
    error: BaseException | None = None
    lost: str | None = None


class Crew(ABC):
    """Workers on the machines of a cluster, and the jobs given to them; between jobs, a worker
    keeps its work open.

    The first answer of a started worker is its packages' versions, which have to be those given.
    `needs` says what a worker needs of a machine, '4 CPUs'; `patience` is how many seconds may pass
    without any worker.
    """

    def __init__(
        self, versions: Mapping[str, str], needs: str = '1 CPU', patience: float = PATIENCE
    ) -> None:
        self.versions = versions
        self.needs = needs
        self.patience = patience
        self.idle: dict[str, WorkerTask | None] = {}  # with the work that each has open
        self.busy: dict[str, int] = {}
        self.starting = self.failed_starts = 0
        self.numbers = (
            itertools.count()
        )  # unique over all runs: late answers of a failed one stay distinct
        self.unread: deque[JobResult] = deque()  # after an error, the next run reads the rest

    @abstractmethod
    def room(self) -> int:
        """How many workers there is room for now."""

    @abstractmethod
    def start(self, most: int) -> int:
        """Start workers where there is room, until there are `most`; returns how many were
        started.
        """

    @abstractmethod
    def ask(self, worker: str, job: Job) -> None:
        """Give an idle worker a job."""

    @abstractmethod
    def answers(self, seconds: float) -> list[JobResult]:
        """The answers that have arrived, waiting at most `seconds`."""

    @abstractmethod
    def alive(self, worker: str) -> bool:
        """Whether a worker's machine is part of the cluster."""

    @abstractmethod
    def place(self, worker: str) -> str:
        """The machine of a worker, lost or not."""

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of all jobs, in their order. Errors are those of `stream`."""
        return [value for _, value in sorted(self.stream(jobs), key=itemgetter(0))]

    def stream(self, jobs: Iterable[Job]) -> Iterator[tuple[int, Any]]:
        """(place, result) of each job, from place 0, as they are done; a few jobs are taken ahead
        of the workers.

        Raises a worker's own error, with its machine; an unexpected one is a ClusterError.
        """
        self.jobs: dict[int, Job] = {}  # not done yet
        self.waiting: list[int] = []
        self.not_before: dict[int, float] = {}
        self.tries: dict[int, int] = {}
        source = enumerate(jobs)
        places = {}
        alone_since = time.monotonic()
        while True:
            for place, job in itertools.islice(
                source, max(0, _AHEAD * max(1, self.room()) - len(self.jobs))
            ):
                number = next(self.numbers)
                self.jobs[number] = job
                places[number] = place
                self.waiting.append(number)
            if not self.jobs:
                return
            self.starting += self.start(len(self.jobs))
            if self.idle or self.busy:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > self.patience:
                if not self.starting:
                    room = (
                        f'no machine of the cluster has had room for a worker for '
                        f'{self.patience:.0f} s'
                    )
                    raise ClusterError(f'{room}: one needs {self.needs}')
                logger.warning(
                    'waiting for the first of %d workers, %s each', self.starting, self.needs
                )
                alone_since = time.monotonic()
            self._give()
            self.unread.extend(self.answers(_TICK))
            while self.unread:
                answer = self.unread.popleft()
                if (finished := self._take(answer)) is not None:
                    yield places.pop(finished), answer.value

    def _give(self) -> None:
        """Give jobs to idle workers; a worker gets a job of the work that it has open, if there
        is one.
        """
        for worker, opened in list(self.idle.items()):
            if not self.alive(worker):  # giving it a job would cost the job a try
                del self.idle[worker]
                continue
            ready = [
                number
                for number in self.waiting
                if self.not_before.get(number, 0.0) <= time.monotonic()
            ]
            if not ready:
                return
            number = next(
                (number for number in ready if self.jobs[number].work == opened), ready[0]
            )
            self.waiting.remove(number)
            del self.idle[worker]
            self.busy[worker] = number
            self.ask(worker, self.jobs[number])

    def _take(self, answer: JobResult) -> int | None:
        """Process an answer; returns the number of its job if that is done, else None."""
        worker = answer.worker
        number = self.busy.pop(answer.worker, None)
        if number is None:
            self._started(answer)
        elif number not in self.jobs:  # a job of a run that failed
            if answer.lost is None:
                self.idle[worker] = None
        elif answer.lost is not None:
            self._again(number, answer.lost, 0)
        elif answer.error is not None:
            self.idle[worker] = self.jobs[number].work
            if not isinstance(answer.error, BusyError):
                raise self._placed(answer.error, worker) from answer.error
            self._again(
                number, str(answer.error), 2.0 ** self.tries.get(number, 0)
            )  # a lost worker's lock ends soon
        else:
            self.idle[worker] = self.jobs.pop(number).work
            return number
        return None

    def _started(self, answer: JobResult) -> None:
        self.starting -= 1
        if answer.error is not None:
            raise self._placed(answer.error, answer.worker) from answer.error
        if answer.lost is None:
            for package, version in self.versions.items():
                if (there := answer.value.get(package, 'not at all')) != version:
                    raise MismatchError(
                        f'{self.place(answer.worker)} has {package} {there}, this machine '
                        f'{version}: install the same '
                        'version on every machine'
                    )
            self.failed_starts = 0
            self.idle[answer.worker] = None
        elif self.alive(answer.worker):
            self.failed_starts += 1
            if self.failed_starts >= TRIES:
                raise ClusterError(
                    f'{TRIES} workers one after the other did not start: {answer.lost}'
                )

    def _again(self, number: int, why: str, delay: float) -> None:
        self.tries[number] = tries = self.tries.get(number, 0) + 1
        name = self.jobs[number].name
        if tries >= TRIES:
            raise ClusterError(
                f'{name} was tried {TRIES} times, and failed with its machine each time: {why}'
            )
        logger.warning('%s is done again: %s', name, why)
        self.not_before[number] = time.monotonic() + delay
        self.waiting.append(number)

    def _placed(self, error: BaseException, worker: str) -> PyseriniRepbertError:
        where = f' (on {self.place(worker)})'
        if isinstance(error, PyseriniRepbertError):
            return type(error)(f'{error}{where}', parameters=error.parameters)
        return ClusterError(f'{type(error).__name__}: {error}{where}')

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
_TICK = 1.0  # seconds to wait for results before looking at the cluster again


class WorkerTask(Protocol):
    """A task that a worker opens once and runs for many arguments: a small frozen value, sent to
    the worker.
    """

    def open(self, threads: int) -> Callable[[Any], Any]:
        """Open the task; returns the function from an argument to a result, which computes with
        `threads` threads.
        """


@dataclass(frozen=True)
class Job:
    """One argument for a task, with a name for messages: 'shard 7'."""

    name: str
    task: WorkerTask
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


@dataclass
class _Attempts:
    """A job that is not done yet.

    Attributes
    ----------
    position : among the jobs of its run
    failed : how often it failed
    not_before : when it may be tried again, a time of `time.monotonic`
    """

    job: Job
    position: int
    failed: int = 0
    not_before: float = 0.0


class WorkerPool(ABC):
    """Workers on the machines of a cluster, and the jobs given to them; between jobs, a worker
    keeps its task open.

    The first result of a started worker is its packages' versions, which have to be those given.

    Parameters
    ----------
    versions : of packages, by name
    needs : what a worker needs of a machine: '4 CPUs'
    patience : how many seconds may pass without any worker
    """

    def __init__(
        self, versions: Mapping[str, str], needs: str = '1 CPU', patience: float = PATIENCE
    ) -> None:
        self.versions = versions
        self.needs = needs
        self.patience = patience
        # The task that each idle worker has open, and the number of each busy worker's job.
        self.idle: dict[str, WorkerTask | None] = {}
        self.busy: dict[str, int] = {}
        self.starting = 0
        self.failed_starts = 0
        # Unique over all runs, to tell late results of a failed run from results of the next one.
        self._numbers = itertools.count()
        self._jobs: dict[int, _Attempts] = {}
        self._waiting: list[int] = []
        # After an error, the next run reads the rest.
        self._unread: deque[JobResult] = deque()

    @abstractmethod
    def capacity(self) -> int:
        """How many workers there is room for now."""

    @abstractmethod
    def start(self, most: int) -> int:
        """Start workers on machines with room, up to `most`; returns how many were started."""

    @abstractmethod
    def submit(self, worker: str, job: Job) -> None:
        """Give an idle worker a job."""

    @abstractmethod
    def results(self, seconds: float) -> list[JobResult]:
        """The results that have arrived, waiting at most `seconds`."""

    @abstractmethod
    def is_alive(self, worker: str) -> bool:
        """Whether a worker's machine is part of the cluster."""

    @abstractmethod
    def machine_of(self, worker: str) -> str:
        """The machine of a worker, lost or not."""

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """The values of all jobs, in their order. Raises the errors of `stream`."""
        return [value for _, value in sorted(self.stream(jobs), key=itemgetter(0))]

    def stream(self, jobs: Iterable[Job]) -> Iterator[tuple[int, Any]]:
        """(position, value) of each job, from position 0, when it is done.

        A few jobs are taken ahead of the workers.

        Raises a worker's own error, with its machine; an unexpected one is a ClusterError.
        """
        self._jobs = {}
        self._waiting = []
        source = enumerate(jobs)
        alone_since = time.monotonic()
        while True:
            self._take_jobs(source)
            if not self._jobs:
                return
            self.starting += self.start(len(self._jobs))
            if self.idle or self.busy:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > self.patience:
                self._report_no_worker()
                alone_since = time.monotonic()
            self._give_jobs()
            self._unread.extend(self.results(_TICK))
            while self._unread:
                result = self._unread.popleft()
                position = self._process(result)
                if position is not None:
                    yield position, result.value

    def _take_jobs(self, source: Iterator[tuple[int, Job]]) -> None:
        """Take jobs from the source, as many as the workers will soon ask for."""
        wanted = _AHEAD * max(1, self.capacity()) - len(self._jobs)
        for position, job in itertools.islice(source, max(0, wanted)):
            number = next(self._numbers)
            self._jobs[number] = _Attempts(job, position)
            self._waiting.append(number)

    def _report_no_worker(self) -> None:
        """Warn that workers take long to start. Raises ClusterError if none is starting."""
        if not self.starting:
            raise ClusterError(
                'no machine of the cluster has had room for a worker for '
                f'{self.patience:.0f} s: one needs {self.needs}'
            )
        logger.warning('waiting for the first of %d workers, %s each', self.starting, self.needs)

    def _give_jobs(self) -> None:
        """Give jobs to idle workers.

        If possible, a worker gets a job of the task that it has open.
        """
        for worker, open_task in list(self.idle.items()):
            if not self.is_alive(worker):
                # Giving it a job would cost the job a try.
                del self.idle[worker]
                continue
            number = self._next_job(open_task)
            if number is None:
                return
            self._waiting.remove(number)
            del self.idle[worker]
            self.busy[worker] = number
            self.submit(worker, self._jobs[number].job)

    def _next_job(self, open_task: WorkerTask | None) -> int | None:
        """The number of the job that comes next for a worker; None if none may be tried now."""
        now = time.monotonic()
        ready = [number for number in self._waiting if self._jobs[number].not_before <= now]
        for number in ready:
            if self._jobs[number].job.task == open_task:
                return number
        return ready[0] if ready else None

    def _process(self, result: JobResult) -> int | None:
        """Process a result; returns the position of its job if that is done, otherwise None."""
        worker = result.worker
        number = self.busy.pop(worker, None)
        if number is None:
            self._process_start(result)
        elif number not in self._jobs:
            # A job of a run that failed.
            if result.lost is None:
                self.idle[worker] = None
        elif result.lost is not None:
            self._try_again(number, result.lost, delay=0)
        elif result.error is not None:
            attempts = self._jobs[number]
            self.idle[worker] = attempts.job.task
            if not isinstance(result.error, BusyError):
                raise self._with_machine(result.error, worker) from result.error
            # A lost worker's lock ends soon.
            self._try_again(number, str(result.error), delay=2.0**attempts.failed)
        else:
            attempts = self._jobs.pop(number)
            self.idle[worker] = attempts.job.task
            return attempts.position
        return None

    def _process_start(self, result: JobResult) -> None:
        """Process the first result of a worker: its versions, or why it did not start."""
        worker = result.worker
        self.starting -= 1
        if result.error is not None:
            raise self._with_machine(result.error, worker) from result.error
        if result.lost is None:
            self._check_versions(worker, result.value)
            self.failed_starts = 0
            self.idle[worker] = None
        elif self.is_alive(worker):
            self.failed_starts += 1
            if self.failed_starts >= TRIES:
                raise ClusterError(f'{TRIES} workers in a row did not start: {result.lost}')

    def _check_versions(self, worker: str, versions: Mapping[str, str]) -> None:
        """Raises MismatchError for a worker with other versions of packages."""
        for package, version in self.versions.items():
            installed = versions.get(package, 'not at all')
            if installed != version:
                raise MismatchError(
                    f'{self.machine_of(worker)} has {package} {installed}, this machine {version}: '
                    'install the same version on every machine'
                )

    def _try_again(self, number: int, why: str, delay: float) -> None:
        """Let a job wait once more, `delay` seconds at least."""
        attempts = self._jobs[number]
        attempts.failed += 1
        if attempts.failed >= TRIES:
            raise ClusterError(
                f'{attempts.job.name} was tried {TRIES} times, and failed with its machine each '
                f'time: {why}'
            )
        logger.warning('%s starts again: %s', attempts.job.name, why)
        attempts.not_before = time.monotonic() + delay
        self._waiting.append(number)

    def _with_machine(self, error: BaseException, worker: str) -> PyseriniRepbertError:
        """The error with the machine on which it was raised."""
        where = f' (on {self.machine_of(worker)})'
        if isinstance(error, PyseriniRepbertError):
            return type(error)(f'{error}{where}', parameters=error.parameters)
        return ClusterError(f'{type(error).__name__}: {error}{where}')

"""Workers as actors of a Ray cluster: one for each GPU, or for each group of cores, of every
machine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.errors import ClusterError, InputError, needs
from pyserini_repbert.worker_pool import Job, JobResult, WorkerPool, WorkerTask

CORES = 8  # CPUs of a worker, on machines that have as many
_PACKAGES = ('torch', 'transformers')
_SECONDS = 5.0  # for a connection
_LOOPBACK = 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'  # 0: Ray leaves 127.0.0.1 as it is


def versions() -> dict[str, str]:
    """The versions, on this machine, of Python and of the packages that decide the results."""
    # Values sent to a worker are pickled: major and minor version have to agree.
    python = '.'.join(platform.python_version_tuple()[:2])
    found = {'python': python, 'pyserini_repbert': __version__}
    for name in _PACKAGES:
        found[name] = metadata.version(name)
    return found


@dataclass(frozen=True)
class MachineCapacity:
    """How many workers a machine has room for, and how many CPUs each gets."""

    workers: int
    cores: int


def capacity_of(resources: Mapping[str, float], threads: int | None, gpu: bool) -> MachineCapacity:
    """What a machine with these resources, 'CPU' and 'GPU', has room for.

    A worker has `threads` CPUs, by default `CORES`, or all that a smaller machine has; and a GPU if
    `gpu`.
    """
    cpus = int(resources.get('CPU', 0))
    gpus = int(resources.get('GPU', 0))
    if not cpus or (gpu and not gpus):
        return MachineCapacity(0, 0)
    if gpu:
        cores = min(threads or CORES, max(1, cpus // gpus))
        return MachineCapacity(min(gpus, cpus // cores), cores)
    cores = threads or min(CORES, cpus)
    return MachineCapacity(cpus // cores, cores)


class RayWorker:
    """The actor in a worker's process, which keeps the last task open."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._task: WorkerTask | None = None
        self._function: Callable[[Any], Any] | None = None

    def versions(self) -> dict[str, str]:
        """The versions of this worker's packages."""
        return versions()

    def run(self, task: WorkerTask, argument: Any) -> Any:
        """The result of a task for an argument."""
        if self._function is None or task != self._task:
            # Free the old task before another is opened.
            self._task = None
            self._function = None
            self._function = task.open(self._threads)
            self._task = task
        return self._function(argument)


@dataclass(frozen=True)
class _Machine:
    """Where a worker is: the id of its node, and the words for messages."""

    node: str
    shown: str


class RayWorkerPool(WorkerPool):
    """Workers that are actors of the Ray cluster that this process is connected to;
    `ray_worker_pool` makes one.
    """

    def __init__(self, threads: int | None, gpu: bool) -> None:
        import ray

        needs = '1 CPU'
        if threads is not None and threads > 1:
            needs = f'{threads} CPUs'
        if gpu:
            needs += ' and a GPU'
        super().__init__(versions(), needs)
        self._ray: Any = ray
        self._threads = threads
        self._gpu = gpu
        self._actors: dict[str, Any] = {}
        self._machines: dict[str, _Machine] = {}
        # The worker that owes each reference.
        self._pending: dict[Any, str] = {}
        self._alive: set[str] = set()
        self._names = (f'worker-{number}' for number in itertools.count())

    def capacity(self) -> int:
        return sum(self._capacity_of(node).workers for node in self._nodes())

    def _nodes(self) -> list[Mapping[str, Any]]:
        """The nodes of the cluster that are alive."""
        return [node for node in self._ray.nodes() if node['Alive']]

    def _capacity_of(self, node: Mapping[str, Any]) -> MachineCapacity:
        return capacity_of(node['Resources'], self._threads, self._gpu)

    def start(self, most: int) -> int:
        nodes = self._nodes()
        self._alive = {node['NodeID'] for node in nodes}
        self._forget_lost_workers()
        n_before = len(self._actors)
        # One worker more on each machine, until all are full.
        for n_wanted in itertools.count(1):
            wanting = [node for node in nodes if self._capacity_of(node).workers >= n_wanted]
            if not wanting:
                break
            for node in wanting:
                if self._n_workers(node) < n_wanted and len(self._actors) < most:
                    self._start(node, self._capacity_of(node).cores)
        return len(self._actors) - n_before

    def _forget_lost_workers(self) -> None:
        """Forget idle workers of lost machines, because no result will report their loss."""
        for worker in list(self._actors):
            if not self.is_alive(worker) and worker not in self._pending.values():
                del self._actors[worker]

    def _n_workers(self, node: Mapping[str, Any]) -> int:
        """How many workers a node has."""
        return sum(self._machines[worker].node == node['NodeID'] for worker in self._actors)

    def _start(self, node: Mapping[str, Any], cores: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node['NodeID'], soft=False)
        options = {
            'num_cpus': cores,
            'num_gpus': int(self._gpu),
            'max_restarts': 0,
            'scheduling_strategy': there,
        }
        handle = self._ray.remote(**options)(RayWorker).remote(cores)
        name = next(self._names)
        shown = f'machine {node["NodeManagerAddress"]} ({node["NodeID"][:6]})'
        self._machines[name] = _Machine(node['NodeID'], shown)
        self._actors[name] = handle
        self._pending[handle.versions.remote()] = name

    def submit(self, worker: str, job: Job) -> None:
        reference = self._actors[worker].run.remote(job.task, job.argument)
        self._pending[reference] = worker

    def results(self, seconds: float) -> list[JobResult]:
        if not self._pending:
            time.sleep(seconds)
            return []
        self._ray.wait(list(self._pending), num_returns=1, timeout=seconds)
        ready, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        return [self._result(reference) for reference in ready]

    def _result(self, reference: Any) -> JobResult:
        worker = self._pending.pop(reference)
        try:
            return JobResult(worker, self._ray.get(reference))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, BaseException):
                return JobResult(worker, error=error.cause)
            return JobResult(worker, error=error)
        except self._ray.exceptions.RayError as error:
            # It may be alive and only out of reach.
            with contextlib.suppress(Exception):
                self._ray.kill(self._actors[worker])
            del self._actors[worker]
            return JobResult(worker, lost=f'{self.machine_of(worker)}: {_first_line(error)}')

    def is_alive(self, worker: str) -> bool:
        return self._machines[worker].node in self._alive

    def machine_of(self, worker: str) -> str:
        return self._machines[worker].shown

    def close(self) -> None:
        """End all workers."""
        for actor in self._actors.values():
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        self._actors = {}
        self._pending = {}


@contextlib.contextmanager
def ray_worker_pool(
    address: str, threads: int | None = None, gpu: bool = False
) -> Iterator[RayWorkerPool]:
    """Workers in the cluster at an address, until the end of the context.

    The address is 'auto', for the cluster that this machine is part of, or HOST:PORT of its head.
    """
    if _check_connection(address).startswith(('127.', 'localhost')):
        os.environ.setdefault(_LOOPBACK, '0')
    with needs('ray', 'work over Ray', 'ray'):
        import ray
    was_connected = ray.is_initialized()
    if not was_connected:
        try:
            ray.init(address=address, logging_level='ERROR', log_to_driver=False)
        # Ray raises ConnectionError, RuntimeError, ValueError, AssertionError and its own
        except Exception as error:
            raise ClusterError(
                f'no Ray cluster at {address} that this machine is part of ({_first_line(error)}): '
                f'run `ray start` here, or give HOST:PORT of its head'
            ) from error
    pool = RayWorkerPool(threads, gpu)
    try:
        yield pool
    finally:
        pool.close()
        if not was_connected:
            ray.shutdown()


def _check_connection(address: str) -> str:
    """HOST:PORT of a cluster, for 'auto' of this machine's, once it takes a connection; '' if it
    knows of none.

    Ray itself waits more than a minute for a wrong address.
    """
    if address == 'auto':
        address = _own_cluster()
    if not address:
        return ''
    host, _, port = address.rpartition(':')
    if not _is_address(host, port):
        raise InputError(
            f"Ray address '{address[:80]}': expected 'auto' or HOST:PORT, such as '10.0.0.1:6379'"
        )
    try:
        socket.create_connection((host.strip('[]'), int(port)), _SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f'nothing answers at Ray address {address} ({error.strerror or error}): start the head '
            'of a cluster there, or give the address of one that runs'
        ) from error
    return address


def _own_cluster() -> str:
    """The address of the cluster that this machine is part of; '' if it knows of none."""
    named = os.environ.get('RAY_ADDRESS')
    if named:
        return named
    # `ray start` writes this file.
    stored = Path(os.environ.get('RAY_TMPDIR', '/tmp'), 'ray', 'ray_current_cluster')
    if stored.is_file():
        return stored.read_text().strip()
    return ''


def _is_address(host: str, port: str) -> bool:
    """Whether these may be a host and a port."""
    if not host or '/' in host:
        return False
    return port.isascii() and port.isdigit() and int(port[:6]) < 65536


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    return lines[0].rstrip('.:')[:200]

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
from importlib import metadata
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.errors import ClusterError, InputError, needs
from pyserini_repbert.pipeline.ray_jobs import Crew, Job, JobResult, WorkerTask

CORES = 8  # CPUs of a worker, on machines that have as many
_PACKAGES = ('torch', 'transformers')
_SECONDS = 5.0  # for a connection
_LOOPBACK = 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'  # 0: Ray leaves 127.0.0.1 as it is


def versions() -> dict[str, str]:
    """The versions, on this machine, of Python and of the packages that decide the results."""
    python = '.'.join(
        platform.python_version_tuple()[:2]
    )  # major and minor: values sent to a worker are pickled
    return {'python': python, 'pyserini_repbert': __version__} | {
        name: metadata.version(name) for name in _PACKAGES
    }


def group_of(resources: Mapping[str, float], threads: int | None, gpu: bool) -> tuple[int, int]:
    """(workers, CPUs of each) that a machine with these resources, 'CPU' and 'GPU', has room for.

    A worker has `threads` CPUs, by default `CORES`, or all that a smaller machine has; and a GPU if
    `gpu`.
    """
    cpus = int(resources.get('CPU', 0))
    gpus = int(resources.get('GPU', 0))
    if not cpus or (gpu and not gpus):
        return 0, 0
    if gpu:
        cores = min(threads or CORES, max(1, cpus // gpus))
        return min(gpus, cpus // cores), cores
    cores = threads or min(CORES, cpus)
    return cpus // cores, cores


class Host:
    """The actor in a worker's process, which keeps the last opened work open."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._work: WorkerTask | None = None
        self._answer: Callable[[Any], Any] | None = None

    def versions(self) -> dict[str, str]:
        """The versions of this worker's packages."""
        return versions()

    def do(self, work: WorkerTask, argument: Any) -> Any:
        """The result for an argument."""
        if self._answer is None or work != self._work:
            self._work = self._answer = None  # free the old work before opening another
            self._answer = work.opened(self._threads)
            self._work = work
        return self._answer(argument)


class RayCrew(Crew):
    """Workers that are actors of the Ray cluster that this process is connected to; `connected`
    makes one.
    """

    def __init__(self, threads: int | None, gpu: bool) -> None:
        import ray

        cores = f'{threads} CPUs' if threads and threads > 1 else '1 CPU'
        super().__init__(versions(), f'{cores} and a GPU' if gpu else cores)
        self._ray: Any = ray
        self._threads = threads
        self._gpu = gpu
        self._actors: dict[str, Any] = {}
        self._places: dict[str, tuple[str, str]] = {}  # node and name of its machine
        self._pending: dict[Any, str] = {}
        self._alive: set[str] = set()
        self._names = (f'worker-{number}' for number in itertools.count())

    def room(self) -> int:
        alive = [node['Resources'] for node in self._ray.nodes() if node['Alive']]
        return sum(group_of(resources, self._threads, self._gpu)[0] for resources in alive)

    def start(self, most: int) -> int:
        nodes = [node for node in self._ray.nodes() if node['Alive']]
        self._alive = {node['NodeID'] for node in nodes}
        for worker in [name for name in self._actors if not self.alive(name)]:
            if (
                worker not in self._pending.values()
            ):  # an idle worker, whose loss no answer will report
                del self._actors[worker]
        rooms = [group_of(node['Resources'], self._threads, self._gpu) for node in nodes]
        started = 0
        for turn in range(max((room for room, _ in rooms), default=0)):
            for node, (room, cores) in zip(nodes, rooms, strict=True):
                here = sum(self._places[name][0] == node['NodeID'] for name in self._actors)
                if here <= turn < room and len(self._actors) < most:
                    self._start(node, cores)
                    started += 1
        return started

    def _start(self, node: Mapping[str, Any], cores: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node['NodeID'], soft=False)
        options = {
            'num_cpus': cores,
            'num_gpus': int(self._gpu),
            'max_restarts': 0,
            'scheduling_strategy': there,
        }
        handle = self._ray.remote(**options)(Host).remote(cores)
        name = next(self._names)
        self._places[name] = (
            node['NodeID'],
            f'machine {node["NodeManagerAddress"]} ({node["NodeID"][:6]})',
        )
        self._actors[name] = handle
        self._pending[handle.versions.remote()] = name

    def ask(self, worker: str, job: Job) -> None:
        self._pending[self._actors[worker].do.remote(job.work, job.argument)] = worker

    def answers(self, seconds: float) -> list[JobResult]:
        if not self._pending:
            time.sleep(seconds)
            return []
        self._ray.wait(list(self._pending), num_returns=1, timeout=seconds)
        ready, _ = self._ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        return [self._answer(reference) for reference in ready]

    def _answer(self, reference: Any) -> JobResult:
        worker = self._pending.pop(reference)
        try:
            return JobResult(worker, self._ray.get(reference))
        except self._ray.exceptions.RayTaskError as error:
            return JobResult(
                worker, error=error.cause if isinstance(error.cause, BaseException) else error
            )
        except self._ray.exceptions.RayError as error:
            with contextlib.suppress(Exception):  # it may be alive and only out of reach
                self._ray.kill(self._actors[worker])
            del self._actors[worker]
            return JobResult(worker, lost=f'{self.place(worker)}: {_first_line(error)}')

    def alive(self, worker: str) -> bool:
        return self._places[worker][0] in self._alive

    def place(self, worker: str) -> str:
        return self._places[worker][1]

    def close(self) -> None:
        """End all workers."""
        for actor in self._actors.values():
            with contextlib.suppress(Exception):
                self._ray.kill(actor)
        self._actors = {}
        self._pending = {}


@contextlib.contextmanager
def connected(address: str, threads: int | None = None, gpu: bool = False) -> Iterator[RayCrew]:
    """Workers in the cluster at an address, until the end of the context.

    The address is 'auto', for the cluster that this machine is part of, or HOST:PORT of its head.
    """
    if _answering(address).startswith(('127.', 'localhost')):
        os.environ.setdefault(_LOOPBACK, '0')
    with needs('ray', 'work over Ray', 'ray'):
        import ray
    if ours := not ray.is_initialized():
        try:
            ray.init(address=address, logging_level='ERROR', log_to_driver=False)
        # Ray raises ConnectionError, RuntimeError, ValueError, AssertionError and its own
        except Exception as error:
            raise ClusterError(
                f'no Ray cluster at {address} that this machine is part of ({_first_line(error)}): '
                f'run `ray start` here, or give HOST:PORT of its head'
            ) from error
    crew = RayCrew(threads, gpu)
    try:
        yield crew
    finally:
        crew.close()
        if ours:
            ray.shutdown()


def _answering(address: str) -> str:
    """HOST:PORT of a cluster, for 'auto' of this machine's, once it takes a connection; '' if it
    knows of none.

    Ray itself waits more than a minute for a wrong address.
    """
    if address == 'auto':
        stored = Path(
            os.environ.get('RAY_TMPDIR', '/tmp'), 'ray', 'ray_current_cluster'
        )  # of `ray start`
        address = os.environ.get('RAY_ADDRESS') or (
            stored.read_text().strip() if stored.is_file() else ''
        )
    if not address:
        return ''
    host, colon, port = address.rpartition(':')
    if not (
        colon
        and host
        and '/' not in host
        and port.isascii()
        and port.isdigit()
        and int(port[:6]) < 65536
    ):
        raise InputError(
            f"Ray address '{address[:80]}': expected 'auto' or HOST:PORT, '10.0.0.1:6379' say"
        )
    try:
        socket.create_connection((host.strip('[]'), int(port)), _SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f'nothing answers at Ray address {address} ({error.strerror or error}): start a '
            f'cluster there with '
            '`ray start --head`, or give the address of its head'
        ) from error
    return address


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip('.:')[:200] if lines else type(error).__name__

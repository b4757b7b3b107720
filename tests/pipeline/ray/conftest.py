"""A pool whose workers are objects of this process, which are lost when a test says so."""

import pytest

from pyserini_repbert import worker_pool as jobs
from pyserini_repbert.pipeline import ray_workers
from pyserini_repbert.pipeline.ray_workers import RayWorker
from pyserini_repbert.worker_pool import JobResult, WorkerPool
from tests.pipeline.conftest import world

__all__ = ['world']


class LocalWorkers(WorkerPool):
    """Room for `size` workers; question number n of all (from 0) loses its worker for n in `loses`.

    Attributes
    ----------
    asked : (worker, name of the job), in order
    """

    def __init__(self, size=2, loses=(), found=None, **settings):
        super().__init__(settings.pop('versions', None) or ray_workers.versions(), **settings)
        self.size = size
        self.loses = loses
        self.found = found or self.versions
        self.workers: dict[str, RayWorker] = {}
        self.asked: list[tuple[str, str]] = []
        self.coming: list[JobResult] = []
        self.gone: set[str] = set()
        self.made = 0

    def capacity(self):
        return self.size

    def start(self, most):
        started = 0
        while len(self.workers) < min(self.size, most):
            name = f'w{self.made}'
            self.made = self.made + 1
            started = started + 1
            self.workers[name] = RayWorker(1)
            self.coming.append(JobResult(name, self.found))
        return started

    def submit(self, worker, job):
        self.asked.append((worker, job.name))
        if len(self.asked) - 1 in self.loses:
            del self.workers[worker]
            self.gone.add(worker)
            self.coming.append(JobResult(worker, lost=f'{worker} died'))
            return
        try:
            self.coming.append(JobResult(worker, self.workers[worker].run(job.task, job.argument)))
        except Exception as error:
            self.coming.append(JobResult(worker, error=error))

    def results(self, seconds):
        arrived = self.coming
        self.coming = []
        return arrived

    def is_alive(self, worker):
        return worker not in self.gone

    def machine_of(self, worker):
        return f'machine of {worker}'


@pytest.fixture
def local_pool(monkeypatch):
    monkeypatch.setattr(jobs, '_TICK', 0.01)
    return LocalWorkers


@pytest.fixture
def connect(monkeypatch):
    """connect(pool) lets commands meet a pool behind --ray; returns what they asked for."""
    import contextlib

    def to(local_pool):
        asked = []

        @contextlib.contextmanager
        def ray_worker_pool(address, threads=None, gpu=False):
            asked.append((address, threads, gpu))
            yield local_pool

        monkeypatch.setattr(ray_workers, 'ray_worker_pool', ray_worker_pool)
        return asked

    return to

"""A crew whose workers are objects of this process, which are lost when a test says so."""

import pytest

from pyserini_repbert.pipeline import ray_jobs as jobs, ray_workers
from pyserini_repbert.pipeline.ray_jobs import Crew, JobResult
from pyserini_repbert.pipeline.ray_workers import Host
from tests.pipeline.conftest import world

__all__ = ['world']


class LocalCrew(Crew):
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
        self.hosts: dict[str, Host] = {}
        self.asked: list[tuple[str, str]] = []
        self.coming: list[JobResult] = []
        self.gone: set[str] = set()
        self.made = 0

    def room(self):
        return self.size

    def start(self, most):
        started = 0
        while len(self.hosts) < min(self.size, most):
            name = f'w{self.made}'
            self.made = self.made + 1
            started = started + 1
            self.hosts[name] = Host(1)
            self.coming.append(JobResult(name, self.found))
        return started

    def ask(self, worker, job):
        self.asked.append((worker, job.name))
        if len(self.asked) - 1 in self.loses:
            del self.hosts[worker]
            self.gone.add(worker)
            self.coming.append(JobResult(worker, lost=f'{worker} died'))
            return
        try:
            self.coming.append(JobResult(worker, self.hosts[worker].do(job.work, job.argument)))
        except Exception as error:
            self.coming.append(JobResult(worker, error=error))

    def answers(self, seconds):
        arrived = self.coming
        self.coming = []
        return arrived

    def alive(self, worker):
        return worker not in self.gone

    def place(self, worker):
        return f'machine of {worker}'


@pytest.fixture
def fleet(monkeypatch):
    monkeypatch.setattr(jobs, '_TICK', 0.01)
    return LocalCrew


@pytest.fixture
def connect(monkeypatch):
    """connect(fleet) lets commands meet a fleet behind --ray; returns what they asked for."""
    import contextlib

    def to(fleet):
        asked = []

        @contextlib.contextmanager
        def connected(address, threads=None, gpu=False):
            asked.append((address, threads, gpu))
            yield fleet

        monkeypatch.setattr(ray_workers, 'connected', connected)
        return asked

    return to

"""Runners compute query batches: in this process, or in one process for each device."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.models.checkpoints.used import used_models
from pyserini_repbert.pipeline.query_batches import planned_inferences, run_batch
from pyserini_repbert.pipeline.resume import BatchResult
from pyserini_repbert.pipeline.specs import StageSpec, open_reranker
from pyserini_repbert.pipeline.stages import Stage
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.record import Model
from pyserini_repbert.rerank.base import Progress

_AHEAD = 2  # batches waiting for each process, so that none is idle


@dataclass(frozen=True)
class Opening:
    """How to open stages on a device: a small value, which can be sent to another process."""

    specs: tuple[StageSpec, ...]
    precision: str | None = None
    backend: str | None = None
    token_budget: int | None = None

    def open(self, device: str) -> list[Stage]:
        """The opened stages."""
        return [Stage(self._reranker(spec, device), spec.k, spec.label) for spec in self.specs]

    def _reranker(self, spec: StageSpec, device: str) -> Any:
        settings = {'precision': self.precision, 'backend': self.backend, 'token_budget': self.token_budget}
        return open_reranker(spec.name, device, dict(spec.options), **settings)


class Job(NamedTuple):
    """A query batch to compute: arguments of `run_batch`."""

    topics: Sequence[Query]
    rankings: Sequence[Ranking]
    drop_rest: bool
    save: Sequence[int] | None


class Plan(NamedTuple):
    """The identity of each stage, the model inputs that each query will take, and the models that will run."""

    identities: list[dict[str, Any]]
    inferences: list[int]
    models: tuple[Model, ...]


def plan_of(stages: Sequence[Stage], lengths: Sequence[int]) -> Plan:
    """The plan of opened stages for candidate lists of these lengths."""
    identities = [{'k': stage.k, **stage.reranker.identity()} for stage in stages]
    by_length = {length: planned_inferences(stages, length) for length in set(lengths)}
    models = used_models([stage.reranker for stage in stages])
    return Plan(identities, [by_length[length] for length in lengths], models)


class Runner(Protocol):
    """Computes query batches, in this process or elsewhere."""

    def plan(self, lengths: Sequence[int]) -> Plan:
        """The plan for candidate lists of these lengths."""

    def run(self, jobs: Iterable[tuple[int, Job]], on_progress: Progress | None) -> Iterator[tuple[int, BatchResult]]:
        """(number, result) of each job; `on_progress` is called with the number of model inputs done since."""


class LocalRunner:
    """Computes batches one after the other in this process."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.stages = stages

    def plan(self, lengths: Sequence[int]) -> Plan:
        """The plan for candidate lists of these lengths."""
        return plan_of(self.stages, lengths)

    def run(self, jobs: Iterable[tuple[int, Job]], on_progress: Progress | None) -> Iterator[tuple[int, BatchResult]]:
        """(number, result) of each job; `on_progress` is called with the number of model inputs done since."""
        for number, job in jobs:
            yield number, run_batch(self.stages, *job, on_progress)


class PoolRunner:
    """Computes batches in one process per device; results arrive in the order in which they are finished.

    Scores do not depend on how queries are distributed over devices, except for the rounding of different hardware.

    Parameters
    ----------
    opening : how each process opens the stages
    devices : one process each: ('cuda:0', 'cuda:1'); a device may come twice
    """

    def __init__(self, opening: Opening, devices: Sequence[str]) -> None:
        import torch
        from torch import multiprocessing

        context = multiprocessing.get_context('spawn')  # CUDA does not survive a fork
        names = context.Queue()
        for device in devices:
            names.put(device)
        threads = max(1, torch.get_num_threads() // len(devices))
        self._n = len(devices)
        self._pool = ProcessPoolExecutor(
            self._n, mp_context=context, initializer=_Worker.start, initargs=(opening, names, threads)
        )

    def plan(self, lengths: Sequence[int]) -> Plan:
        """The plan for candidate lists of these lengths."""
        return _result(self._pool.submit(_Worker.plan, lengths))  # type: ignore[no-any-return]

    def run(self, jobs: Iterable[tuple[int, Job]], on_progress: Progress | None) -> Iterator[tuple[int, BatchResult]]:
        """(number, result) of each job; `on_progress` is called with the model inputs of whole batches."""
        waiting: dict[Future[BatchResult], int] = {}
        stream = iter(jobs)
        try:
            while True:
                for number, job in itertools.islice(stream, self._n * _AHEAD - len(waiting)):
                    waiting[self._pool.submit(_Worker.run, job)] = number
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    batch = _result(future)
                    if on_progress is not None:
                        on_progress(sum(cost.inferences for cost in batch.costs))
                    yield waiting.pop(future), batch
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise PyseriniRepbertError(
            'a process that reranks was ended from outside (out of memory?): resume on fewer devices',
            parameters=('resume', 'devices'),
        ) from error


class _Worker:
    """The state of a worker process: stages are opened by its first job, so that errors are returned with that job."""

    opening: Opening
    device: str
    stages: list[Stage] | None = None

    @classmethod
    def start(cls, opening: Opening, devices: Any, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        cls.opening, cls.device = opening, devices.get()

    @classmethod
    def opened(cls) -> list[Stage]:
        if cls.stages is None:
            cls.stages = cls.opening.open(cls.device)
        return cls.stages

    @classmethod
    def plan(cls, lengths: Sequence[int]) -> Plan:
        return plan_of(cls.opened(), lengths)

    @classmethod
    def run(cls, job: Job) -> BatchResult:
        return run_batch(cls.opened(), *job)

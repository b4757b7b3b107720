"""`SpreadRerankers`: the rerankers of a spec in several workers, on the devices of this machine or
on a cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.models.checkpoints.checkpoint import models_of
from pyserini_repbert.pipeline.spec import PipelineSpec, StageSpec
from pyserini_repbert.processes import end_with_parent
from pyserini_repbert.ranking import Batch, Query, RankedBatch, Ranker, Run
from pyserini_repbert.record import Model
from pyserini_repbert.trace import SILENT, Notes, Trace
from pyserini_repbert.worker_pool import Job, WorkerPool

# Opens the rerankers of a spec on a device.
OpenChain = Callable[[PipelineSpec, Machine, str], Ranker]
# A batch, or lengths of candidate lists, whose `ChainFacts` are requested.
Request = Batch | Sequence[int]
_AHEAD = 2  # batches waiting for each process, so that none is idle


class ChainFacts(NamedTuple):
    """What a worker says of the rerankers that it has opened.

    Attributes
    ----------
    identity, models : the rerankers'
    planned : the model inputs of lists of 0, 1, … candidates
    reads_scores : as for every ranker
    """

    identity: Mapping[str, Any]
    planned: list[int]
    models: tuple[Model, ...]
    reads_scores: bool


@dataclass(frozen=True)
class RerankBatches:
    """The task of reranking batches with the rerankers of a spec.

    A checkpoint folder must exist on every machine.
    """

    open_chain: OpenChain
    spec: PipelineSpec
    machine: Machine

    def open(self, threads: int, device: str | None = None) -> Callable[[Request], Any]:
        """The answers of a worker on a device, by default the machine's first.

        The answer to a batch is its number, run and notes; that to lengths of candidate lists the
        `ChainFacts`. The first call opens the rerankers, so that their errors are raised by a call.
        """
        import torch

        torch.set_num_threads(threads)

        @cache
        def open_chain() -> Ranker:
            return self.open_chain(self.spec, self.machine, device or self.machine.devices[0])

        return lambda request: _answer(open_chain(), request)


def _answer(chain: Ranker, request: Request) -> Any:
    if not isinstance(request, Batch):
        return ChainFacts(
            identity=chain.identity(),
            planned=chain.planned(request),
            models=models_of(chain),
            reads_scores=chain.reads_scores,
        )
    ((number, run, notes),) = chain.stream([request])
    for part in notes.walk():
        part.progress = SILENT
        part.run = {}
    return number, {qid: ranking.without_texts() for qid, ranking in run.items()}, notes


class SpreadRerankers(Ranker, recorded_as='SpreadRerankers'):
    """Gives batches of topics to workers that open the rerankers of the same spec.

    The workers are the machine's `ray`, or a process for each of its devices. Scores do
    not depend on how topics are spread, except for the rounding of different hardware.
    """

    def __init__(self, open_chain: OpenChain, spec: PipelineSpec, machine: Machine) -> None:
        task = RerankBatches(open_chain, spec, machine)
        self._workers: DeviceWorkers | RayWorkers
        if machine.ray is None:
            self._workers = DeviceWorkers(task)
        else:
            self._workers = RayWorkers(task)
        self.name = '+'.join(stage.label for stage in spec.stages)
        self.reads = spec.stages[0].k
        self.n_excerpts = max(stage.n_excerpts for stage in spec.stages)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        ((_, reranked, notes),) = self.stream([Batch(0, topics, run)], trace)
        if isinstance(trace, Notes):
            trace.add(notes)
        return reranked

    def stream(self, batches: Iterable[Batch], trace: Trace = SILENT) -> Iterator[RankedBatch]:
        for number, run, notes in self._workers.answers(batches):
            trace.advance(sum(part.cost.inferences for part in notes.walk() if part.cost))
            yield RankedBatch(number, run, notes)

    def close(self) -> None:
        self._workers.close()

    def planned(self, lengths: Sequence[int]) -> list[int]:
        planned = self._facts.planned
        return [planned[min(length, len(planned) - 1)] for length in lengths]

    def identity(self) -> Mapping[str, Any]:
        return self._facts.identity

    @property
    def reads_scores(self) -> bool:
        return self._facts.reads_scores

    @property
    def models(self) -> tuple[Model, ...]:
        """The checkpoints that the workers run."""
        return self._facts.models

    @cached_property
    def _facts(self) -> ChainFacts:
        facts: ChainFacts
        (facts,) = self._workers.answers([range((self.reads or 0) + 1)])
        return facts


class DeviceWorkers:
    """One process for each device: ('cuda:0', 'cuda:1'); a device may come twice."""

    def __init__(self, task: RerankBatches) -> None:
        import torch
        from torch import multiprocessing

        # CUDA does not survive a fork.
        context = multiprocessing.get_context('spawn')
        devices = context.Queue()
        for device in task.machine.devices:
            devices.put(device)
        self._n = len(task.machine.devices)
        threads = max(1, torch.get_num_threads() // self._n)
        self._pool = ProcessPoolExecutor(self._n, context, _Process.start, (task, threads, devices))

    def answers(self, requests: Iterable[Request]) -> Iterator[Any]:
        """The answer to each request, in the order in which they are finished."""
        waiting: set[Future[Any]] = set()
        source = iter(requests)
        try:
            while True:
                more = itertools.islice(source, self._n * _AHEAD - len(waiting))
                waiting |= {self._pool.submit(_Process.answer, batch) for batch in more}
                if not waiting:
                    return
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise PyseriniRepbertError(
                'a process that reranks was ended from outside (out of memory?): resume on fewer '
                'devices',
                parameters=('resume', 'devices'),
            ) from error

    def close(self) -> None:
        """End the processes, once they are done with their batches."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Process:
    """The worker of a process."""

    worker: Callable[[Request], Any]

    @classmethod
    def start(cls, task: RerankBatches, threads: int, devices: Any) -> None:
        end_with_parent()
        cls.worker = task.open(threads, devices.get())

    @classmethod
    def answer(cls, request: Request) -> Any:
        return cls.worker(request)


class RayWorkers:
    """The workers of a pool; each computes on the machine's first device, and starts with its
    first batch.
    """

    def __init__(self, task: RerankBatches) -> None:
        self._pool: WorkerPool = task.machine.ray
        spec = task.spec.model_copy(update={'stages': tuple(map(_absolute, task.spec.stages))})
        self._task = replace(task, spec=spec, machine=task.machine.model_copy(update={'ray': None}))

    def answers(self, requests: Iterable[Request]) -> Iterator[Any]:
        """The answer to each request, in the order in which they are finished."""
        jobs = (Job(_name_of(request), self._task, request) for request in requests)
        return (answer for _, answer in self._pool.stream(jobs))

    def close(self) -> None:
        """Do nothing: the owner of the pool closes it."""


def _name_of(request: Request) -> str:
    """What a request is, in messages."""
    if isinstance(request, Batch):
        return f'query batch {request.number}'
    return 'opening the stages'


def _absolute(stage: StageSpec) -> StageSpec:
    """A stage with absolute paths, since workers have other working folders."""
    options = []
    for key, value in stage.options:
        if key == 'index':
            value = _absolute_path(value)
        options.append((key, value))
    return replace(stage, name=_absolute_path(stage.name), options=tuple(options))


def _absolute_path(name: str) -> str:
    """The absolute path of a file or folder; other names stay."""
    path = Path(name)
    if path.exists():
        return str(path.absolute())
    return name

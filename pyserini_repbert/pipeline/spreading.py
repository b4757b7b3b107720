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
from pyserini_repbert.models.checkpoints.checkpoint import models_of
from pyserini_repbert.pipeline.ray_jobs import Crew, Job
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec, StageSpec
from pyserini_repbert.ranking import Batch, Query, RankedBatch, Ranker, Run
from pyserini_repbert.record import Model
from pyserini_repbert.trace import SILENT, Notes, Trace

OpenChain = Callable[
    [PipelineSpec, Machine, str], Ranker
]  # opens the rerankers of a spec on a device
_AHEAD = 2  # batches waiting for each process, so that none is idle


class Facts(NamedTuple):
    """What a worker says of the rerankers that it has opened; `planned` is for lists of 0, 1, …
    candidates.
    """

    identity: Mapping[str, Any]
    planned: list[int]
    models: tuple[Model, ...]


@dataclass(frozen=True)
class RerankBatches:
    """The work of reranking batches with the rerankers of a spec; a checkpoint folder has to be
    on every machine.
    """

    open_chain: OpenChain
    spec: PipelineSpec
    machine: Machine

    def opened(
        self, threads: int, device: str | None = None
    ) -> Callable[[Batch | Sequence[int]], Any]:
        """The answers of a worker on a device, by default the machine's first.

        The answer to a batch is its number, run and notes; that to lengths of candidate lists the
        `Facts`. The first call opens the rerankers, so that errors are those of a call.
        """
        import torch

        torch.set_num_threads(threads)
        opened = cache(
            lambda: self.open_chain(self.spec, self.machine, device or self.machine.devices[0])
        )
        return lambda asked: _answer(opened(), asked)


def _answer(chain: Ranker, asked: Batch | Sequence[int]) -> Any:
    if not isinstance(asked, Batch):
        return Facts(chain.identity(), chain.planned(asked), models_of(chain))
    ((number, run, notes),) = chain.stream([asked])
    for part in notes.walk():
        part.progress = SILENT
        part.run = {}
    return number, {qid: ranking.without_texts() for qid, ranking in run.items()}, notes


class SpreadRerankers(Ranker):
    """Gives batches of topics to workers that open the rerankers of the same spec.

    The workers are those of the machine's `ray`, or a process for each of its devices. Scores do
    not depend on how topics are spread, except for the rounding of different hardware.
    """

    def __init__(self, open_chain: OpenChain, spec: PipelineSpec, machine: Machine) -> None:
        places = DevicePlaces if machine.ray is None else RayPlaces
        self._places: DevicePlaces | RayPlaces = places(RerankBatches(open_chain, spec, machine))
        self.name = '+'.join(stage.label for stage in spec.stages)
        self.reads = spec.stages[0].k
        self.n_excerpts = max(stage.n_excerpts for stage in spec.stages)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        ((_, reranked, notes),) = self.stream([Batch(0, topics, run)], trace)
        if isinstance(trace, Notes):
            trace.add(notes)
        return reranked

    def stream(self, batches: Iterable[Batch], trace: Trace = SILENT) -> Iterator[RankedBatch]:
        for number, run, notes in self._places.answers(batches):
            trace.advance(sum(part.cost.inferences for part in notes.walk() if part.cost))
            yield RankedBatch(number, run, notes)

    def close(self) -> None:
        self._places.close()

    def planned(self, lengths: Sequence[int]) -> list[int]:
        return [self._facts.planned[min(n, len(self._facts.planned) - 1)] for n in lengths]

    def identity(self) -> Mapping[str, Any]:
        return self._facts.identity

    @property
    def models(self) -> tuple[Model, ...]:
        """The checkpoints that the workers run."""
        return self._facts.models

    @cached_property
    def _facts(self) -> Facts:
        facts: Facts
        (facts,) = self._places.answers([range((self.reads or 0) + 1)])
        return facts


class DevicePlaces:
    """One process for each device: ('cuda:0', 'cuda:1'); a device may come twice."""

    def __init__(self, work: RerankBatches) -> None:
        import torch
        from torch import multiprocessing

        context = multiprocessing.get_context('spawn')  # CUDA does not survive a fork
        devices = context.Queue()
        for device in work.machine.devices:
            devices.put(device)
        self._n = len(work.machine.devices)
        threads = max(1, torch.get_num_threads() // self._n)
        self._pool = ProcessPoolExecutor(self._n, context, _Process.start, (work, threads, devices))

    def answers(self, asked: Iterable[Batch | Sequence[int]]) -> Iterator[Any]:
        """The answer to each batch, in the order in which they are finished."""
        waiting: set[Future[Any]] = set()
        source = iter(asked)
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

    worker: Callable[[Any], Any]

    @classmethod
    def start(cls, work: RerankBatches, threads: int, devices: Any) -> None:
        cls.worker = work.opened(threads, devices.get())

    @classmethod
    def answer(cls, asked: Batch | Sequence[int]) -> Any:
        return cls.worker(asked)


class RayPlaces:
    """The workers of a crew; each computes on the machine's first device, and starts with its
    first batch.
    """

    def __init__(self, work: RerankBatches) -> None:
        self._crew: Crew = work.machine.ray
        spec = work.spec.model_copy(update={'stages': tuple(map(_absolute, work.spec.stages))})
        self._work = replace(work, spec=spec, machine=work.machine.model_copy(update={'ray': None}))

    def answers(self, asked: Iterable[Batch | Sequence[int]]) -> Iterator[Any]:
        """The answer to each batch, in the order in which they are finished."""
        named = (
            Job(
                f'query batch {batch.number}' if isinstance(batch, Batch) else 'opening the stages',
                self._work,
                batch,
            )
            for batch in asked
        )
        return (answer for _, answer in self._crew.stream(named))

    def close(self) -> None:
        """The crew is its owner's."""


def _absolute(stage: StageSpec) -> StageSpec:
    """A stage with absolute paths, since workers have other working folders."""

    def path(name: str) -> str:
        return str(Path(name).absolute()) if Path(name).exists() else name

    options = tuple((key, path(value) if key == 'index' else value) for key, value in stage.options)
    return replace(stage, name=path(stage.name), options=options)

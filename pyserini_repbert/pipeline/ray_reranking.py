"""Reranking on the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_repbert.pipeline.ray_jobs import Crew, Fleet, Job
from pyserini_repbert.pipeline.ray_workers import versions
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec, StageSpec
from pyserini_repbert.pipeline.spreading import ChainWorker
from pyserini_repbert.ranking import Batch


@dataclass(frozen=True)
class RerankBatches:
    """The work of a `ChainWorker`; a checkpoint folder has to be on every machine."""

    spec: PipelineSpec
    machine: Machine

    def opened(self, threads: int) -> Callable[[Any], Any]:
        """The worker's answers."""
        import torch

        torch.set_num_threads(threads)
        return ChainWorker(self.spec, self.machine, self.machine.devices[0])


class RayPlaces:
    """The workers of a fleet, as `spreading.Places`; each computes on the machine's first device."""

    def __init__(self, fleet: Fleet) -> None:
        self._crew = Crew(fleet, versions())

    def start(self, spec: PipelineSpec, machine: Machine) -> None:
        """Take the work; workers start with the first batch."""
        stages = tuple(_absolute(stage) for stage in spec.stages)
        alone = machine.model_copy(update={'ray': None})
        self._work = RerankBatches(spec.model_copy(update={'stages': stages}), alone)

    def answers(self, asked: Iterable[Batch | Sequence[int]]) -> Iterator[Any]:
        """The answer to each batch, in the order in which they are finished."""
        named = (
            Job(f'query batch {batch.number}' if isinstance(batch, Batch) else 'opening the stages', self._work, batch)
            for batch in asked
        )
        return (answer for _, answer in self._crew.stream(named))

    def close(self) -> None:
        """The fleet is its owner's."""


def _absolute(stage: StageSpec) -> StageSpec:
    """A stage with absolute paths, since workers have other working folders."""

    def path(name: str) -> str:
        return str(Path(name).absolute()) if Path(name).exists() else name

    options = tuple((key, path(value) if key == 'index' else value) for key, value in stage.options)
    return replace(stage, name=path(stage.name), options=options)

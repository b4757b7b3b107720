"""Reranking query batches on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_repbert.cluster.jobs import Crew, Fleet, Job
from pyserini_repbert.cluster.ray_fleet import versions
from pyserini_repbert.pipeline import runners
from pyserini_repbert.pipeline.query_batches import run_batch
from pyserini_repbert.pipeline.resume import BatchResult
from pyserini_repbert.pipeline.specs import StageSpec
from pyserini_repbert.rerank.base import Progress


@dataclass(frozen=True)
class RerankBatches:
    """The work of reranking with stages on a device; a checkpoint folder has to be on every machine."""

    opening: runners.Opening
    device: str

    def opened(self, threads: int) -> Callable[[Any], Any]:
        """Open the stages; returns a function that runs a `runners.Job`, or plans for lengths of candidate lists."""
        import torch

        torch.set_num_threads(threads)
        stages = self.opening.open(self.device)

        def answer(asked: Any) -> Any:
            return run_batch(stages, *asked) if isinstance(asked, runners.Job) else runners.plan_of(stages, asked)

        return answer


class ClusterRunner:
    """Computes batches on the workers of a fleet; results arrive in the order in which they are finished.

    Scores do not depend on how queries are distributed over machines, except for the rounding of different hardware.

    Parameters
    ----------
    opening : how each worker opens the stages
    device : of each worker
    """

    def __init__(self, fleet: Fleet, opening: runners.Opening, device: str) -> None:
        specs = tuple(_absolute(spec) for spec in opening.specs)
        self._crew = Crew(fleet, versions())
        self._work = RerankBatches(replace(opening, specs=specs), device)

    def plan(self, lengths: Sequence[int]) -> runners.Plan:
        """The plan for candidate lists of these lengths."""
        found: runners.Plan = self._crew.run([Job('opening the stages', self._work, list(lengths))])[0]
        return found

    def run(
        self, jobs: Iterable[tuple[int, runners.Job]], on_progress: Progress | None
    ) -> Iterator[tuple[int, BatchResult]]:
        """(number, result) of each job; `on_progress` is called with the model inputs of whole batches."""
        numbers: list[int] = []

        def named() -> Iterator[Job]:
            for number, job in jobs:
                numbers.append(number)
                yield Job(f'query batch {number}', self._work, job)

        for place, batch in self._crew.stream(named()):
            if on_progress is not None:
                on_progress(sum(cost.inferences for cost in batch.costs))
            yield numbers[place], batch


def _absolute(spec: StageSpec) -> StageSpec:
    """A stage with absolute paths, since workers have other working folders."""

    def path(name: str) -> str:
        return str(Path(name).absolute()) if Path(name).exists() else name

    options = tuple((key, path(value) if key == 'index' else value) for key, value in spec.options)
    return replace(spec, name=path(spec.name), options=options)

"""Planned shards, encoded by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.cluster.jobs import Crew, Fleet, Job
from pyserini_repbert.cluster.ray_fleet import versions
from pyserini_repbert.encode.plan import Plan
from pyserini_repbert.files import StrPath


@dataclass(frozen=True)
class EncodeShards:
    """Shards of the plan in a folder, by number.

    Attributes
    ----------
    output : the folder, absolute, that every machine sees
    encoder : what the checkpoint is called on every machine; None: as in the plan
    offline : never download
    """

    output: str
    device: str = 'cpu'
    encoder: str | None = None
    offline: bool = False

    def opened(self, threads: int) -> Callable[[int], int]:
        """The model and the corpus, opened here; a shard's number in, its number of passages out."""
        import torch

        from pyserini_repbert.download import forbid_downloads
        from pyserini_repbert.encode.plan import read_plan
        from pyserini_repbert.encode.planned import encode_shards, planned_encoding
        from pyserini_repbert.names.corpora import planned_corpus

        torch.set_num_threads(threads)
        forbid_downloads(self.offline)
        plan = read_plan(self.output)
        corpus = plan.check(planned_corpus(plan))
        encoding = planned_encoding(plan, self.device, self.encoder)

        def encode(number: int) -> int:
            encode_shards(self.output, plan, corpus, [number], encoding)
            return plan.shards[number].count

        return encode


def encode_plan(
    fleet: Fleet,
    output: StrPath,
    plan: Plan[Any],
    device: str = 'cpu',
    encoder: str | None = None,
    offline: bool = False,
    on_progress: Callable[[int], object] | None = None,
) -> None:
    """Encode all shards of the plan in a folder; one that is there, and whole, is left as it is.

    Parameters
    ----------
    output : the folder, which every machine sees under this name, as it does the corpus
    on_progress : called with the number of passages of each shard that is done

    Raises
    ------
    ClusterError
        where a shard lost its machine time and again, or no machine has room
    PyseriniRepbertError
        what a worker raised, with its machine
    """
    work = EncodeShards(str(Path(output).absolute()), device, encoder, offline)
    jobs = [Job(f'shard {number}', work, number) for number in range(len(plan.shards))]

    def done(_: int, count: int) -> None:
        if on_progress is not None:
            on_progress(count)

    Crew(fleet, versions()).run(jobs, done)

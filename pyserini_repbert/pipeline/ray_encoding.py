"""Encoding the shards of a plan on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.encode.plan import Plan
from pyserini_repbert.files import StrPath
from pyserini_repbert.pipeline.ray_jobs import Crew, Fleet, Job
from pyserini_repbert.pipeline.ray_workers import versions


@dataclass(frozen=True)
class EncodeShards:
    """The work of encoding shards of the plan in a folder, each given by its number.

    Attributes
    ----------
    output : the folder, an absolute path that every machine sees
    device : of each worker
    encoder : name or folder of the checkpoint on every machine; None: as in the plan
    offline : never download
    """

    output: str
    device: str = 'cpu'
    encoder: str | None = None
    offline: bool = False

    def opened(self, threads: int) -> Callable[[int], int]:
        """Open model and corpus; returns a function that encodes a shard by number and returns its passage count."""
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
    """Encode all shards of the plan in a folder; a complete shard is left as it is.

    Parameters
    ----------
    output : the folder; every machine sees it, and the corpus, under the same name
    device, encoder, offline : as in `EncodeShards`
    on_progress : called with the number of passages of each finished shard

    Raises
    ------
    ClusterError
        where a shard fails repeatedly with its machine, or no machine has room for a worker
    PyseriniRepbertError
        that a worker raised, with its machine named
    """
    work = EncodeShards(str(Path(output).absolute()), device, encoder, offline)
    jobs = [Job(f'shard {number}', work, number) for number in range(len(plan.shards))]

    def done(_: int, count: int) -> None:
        if on_progress is not None:
            on_progress(count)

    Crew(fleet, versions()).run(jobs, done)

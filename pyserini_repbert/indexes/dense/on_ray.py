"""`ShardSearch`: the shards of a dense bundle, searched on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.records import DenseSettings, Manifest
from pyserini_repbert.search.scores import TopRows, merged
from pyserini_repbert.worker_pool import Job, WorkerPool

_Question = tuple[NDArray[np.float32], int]


class ShardSearch:
    """Searches a bundle in groups of shards, one group for each worker that there is room for.

    Scores equal one machine's bit by bit, where processors are of the same kind. Every
    machine has to see the bundle's folder under the same name; the workers verify its files.
    """

    def __init__(self, pool: WorkerPool, bundle: DenseBundle, device: str = 'cpu') -> None:
        self._pool = pool
        manifest = bundle.manifest
        folder = str(bundle.folder.absolute())
        # The first row of each group of shards, and the task of searching the group.
        self._first_rows: list[int] = []
        self._tasks: list[SearchShards] = []
        n_shards = len(manifest.shards)
        n_groups = max(1, min(pool.capacity(), n_shards))
        first_row = 0
        for numbers in np.array_split(range(n_shards), n_groups):
            shards = manifest.shards[numbers[0] : numbers[-1] + 1]
            part = replace(manifest, shards=shards, count=sum(shard.count for shard in shards))
            self._tasks.append(SearchShards(folder, part, device))
            self._first_rows.append(first_row)
            first_row += part.count

    def __call__(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best rows of each query, float32 (n, d), and all that tie with the last of them."""
        jobs = [Job(task.name, task, (queries, k)) for task in self._tasks]
        parts: list[list[TopRows]] = self._pool.run(jobs)
        return [merged(tops, self._first_rows, k) for tops in zip(*parts, strict=True)]


@dataclass(frozen=True)
class SearchShards:
    """The task of searching the shards of a bundle that `part` has; `index` is its folder, an
    absolute path.
    """

    index: str
    part: Manifest[DenseSettings]
    device: str = 'cpu'

    @property
    def name(self) -> str:
        """'shard-00000 to shard-00003 of /data/index'"""
        first = self.part.shards[0].folder
        last = self.part.shards[-1].folder
        if first == last:
            return f'{first} of {self.index}'
        return f'{first} to {last} of {self.index}'

    def open(self, threads: int) -> Callable[[_Question], list[TopRows]]:
        """Open the shards; returns a function from (queries, k) to best rows, numbered from the
        first shard's first.
        """
        import torch

        from pyserini_repbert.models.precision import usable_device
        from pyserini_repbert.search.exact import ExactIndex

        torch.set_num_threads(threads)
        index = ExactIndex(DenseBundle(self.index, part=self.part), usable_device(self.device))
        return lambda question: index.search(*question)

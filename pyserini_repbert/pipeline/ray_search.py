"""Exact search of a dense bundle, its shards distributed over the machines of a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.index.dense import DenseBundle, DenseShard
from pyserini_repbert.index.records import Settings, ShardRecord
from pyserini_repbert.pipeline.ray_jobs import Crew, Job
from pyserini_repbert.search.exact import TopRows, merged

_Question = tuple[NDArray[np.float32], int]


class ShardSearch:
    """Searches a bundle in groups of shards, one group for each worker that there is room for.

    Scores equal those of one machine bit by bit, where processors are of the same kind.

    Parameters
    ----------
    bundle : in a folder that every machine sees under the same name; the workers verify its files
    device : where vectors are multiplied
    """

    def __init__(self, crew: Crew, bundle: DenseBundle, device: str = 'cpu') -> None:
        self._crew = crew
        records = bundle.manifest.shards
        self._starts: list[int] = []
        self._works: list[SearchShards] = []
        start = 0
        for group in groups([record.count for record in records], crew.room()):
            group_records = tuple(records[number] for number in group)
            self._works.append(SearchShards(str(bundle.folder.absolute()), bundle.settings, group_records, device))
            self._starts.append(start)
            start += sum(record.count for record in group_records)

    def __call__(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best rows of each query, float32 (n, d), and all that tie with the last of them.

        Raises
        ------
        ClusterError
            where a part of the index could not be searched: there is never a result of the other parts alone
        PyseriniRepbertError
            that a worker raised, with its machine named
        """
        jobs = [Job(work.name, work, (queries, k)) for work in self._works]
        parts: list[list[TopRows]] = self._crew.run(jobs)
        return [merged(tops, self._starts, k) for tops in zip(*parts, strict=True)]


@dataclass(frozen=True)
class SearchShards:
    """The work of searching consecutive shards of a bundle.

    Attributes
    ----------
    index : the bundle's folder, an absolute path
    settings : of the bundle
    records : of the shards, with the checksums of their files
    device : where vectors are multiplied
    """

    index: str
    settings: Settings
    records: tuple[ShardRecord, ...]
    device: str = 'cpu'

    @property
    def name(self) -> str:
        """'shard-00000 to shard-00003 of /data/index'"""
        first, last = self.records[0].folder, self.records[-1].folder
        return f'{first if first == last else f"{first} to {last}"} of {self.index}'

    def opened(self, threads: int) -> Callable[[_Question], list[TopRows]]:
        """Open the shards; returns a function from (queries, k) to best rows, numbered from the first shard's first."""
        import torch

        from pyserini_repbert.models.precision import usable_device
        from pyserini_repbert.search import exact

        torch.set_num_threads(threads)
        device, opened = usable_device(self.device), _Opened(self)
        index = exact.ExactIndex(opened, device)
        return lambda question: index.search(*question)


class _Opened:
    """The vectors of consecutive shards."""

    def __init__(self, work: SearchShards) -> None:
        from pyserini_repbert.index.manifest import verify_files

        self._shards = []
        for record in work.records:
            place = Path(work.index) / record.folder
            verify_files(place, record)
            self._shards.append(DenseShard(place, record, work.settings))

    def __len__(self) -> int:
        return sum(len(shard.vectors) for shard in self._shards)

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """(first row, vectors) of at most `size` rows of one shard each, in order."""
        start = 0
        for shard in self._shards:
            for first in range(0, len(shard.vectors), size):
                yield start + first, shard.vectors[first : first + size]
            start += len(shard.vectors)


def groups(counts: Sequence[int], most: int) -> list[range]:
    """Consecutive shards in groups of about as many passages each.

    Parameters
    ----------
    counts : passages of each shard
    most : number of groups at most; there is at least one
    """
    wanted = max(1, min(most, len(counts)))
    middles = np.cumsum(counts) - np.asarray(counts) / 2
    owners = np.minimum((middles * wanted / sum(counts)).astype(int), wanted - 1)
    cuts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(counts)]
    return [range(first, last) for first, last in itertools.pairwise(cuts)]

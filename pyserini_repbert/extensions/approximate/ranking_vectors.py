"""The vectors of a ranking of a collection: dense vectors, or token vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.extensions.approximate.covered import ShardVectors
from pyserini_repbert.extensions.approximate.dense_candidates import DenseRecall
from pyserini_repbert.extensions.approximate.making import AnnSettings, RecallMeasure
from pyserini_repbert.index.quantized import StoredVectors


class RankingVectors(ABC):
    """The vectors of a ranking of a generation, as `SizedVectors`.

    Attributes
    ----------
    folder : around their approximate index, `ann`: the collection's, or one in it
    shards : of the generation, in the order of `PassageVectors`
    """

    folder: Path
    shards: Sequence[ShardVectors]

    @property
    @abstractmethod
    def settings(self) -> Any:
        """`dimension`, the length of a vector."""

    def __len__(self) -> int:
        return sum(shard.shape[0] for shard in self.shards)

    @abstractmethod
    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """As in `Blocks`."""

    @abstractmethod
    def count_of(self, rows: NDArray[np.bool_]) -> int:
        """How many vectors some passages have, bool (passages,)."""

    @abstractmethod
    def recall_measure(self, settings: AnnSettings) -> RecallMeasure:
        """What measures the recall of an index of them; `queries` and `hits` are taken."""


class DenseVectors(RankingVectors):
    """The dense vectors of passages, one of each."""

    def __init__(self, passages: PassageVectors) -> None:
        self._passages = passages
        self.folder = passages.folder
        self.shards = []
        for shard in passages.shards:
            ends = np.arange(1, len(shard) + 1)
            shape = (len(shard), passages.settings.dimension)
            self.shards.append(ShardVectors(shard.name, shape, ends))

    @property
    def settings(self) -> Any:
        return self._passages.settings

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        return self._passages.blocks(size)

    def count_of(self, rows: NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(rows))

    def recall_measure(self, settings: AnnSettings) -> RecallMeasure:
        return DenseRecall(self._passages, settings, self._passages.live)

"""The dense bundle: memory-mapped vectors and docids in shards, and the texts where stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.bundle import Bundle, Shard, mapped
from pyserini_repbert.index.records import VECTORS, Settings, ShardRecord
from pyserini_repbert.index.shard_writer import ShardWriter


class DenseShard(Shard):
    """One shard: `vectors`, float32 or float16 (count, d), memory-mapped."""

    def __init__(self, folder: Path, record: ShardRecord, settings: Settings) -> None:
        super().__init__(folder, record, settings)
        # 'c', copy-on-write: PyTorch warns of read-only arrays. What is written to these does not
        # reach the file.
        shape = (record.count, settings.dimension)
        self.vectors: NDArray[np.floating] = mapped(folder / VECTORS, settings.dtype, shape, 'c')


class DenseBundle(Bundle[Settings, DenseShard]):
    """An index folder of vectors; its parameters are those of `Bundle`."""

    settings_kind = Settings
    shard_kind = DenseShard

    def blocks(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """(first row, vectors) of at most `size` rows each, in order, memory-mapped.

        They are the rows from `start` to `stop` - 1; None: to the end.
        """
        end = len(self) if stop is None else stop
        for begin, shard in zip(self._docids.starts.tolist(), self.shards, strict=False):
            for first in range(max(start - begin, 0), min(end - begin, len(shard.docids)), size):
                yield begin + first, shard.vectors[first : min(first + size, end - begin)]

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors, float32 (n, d), of rows numbered across all shards, int64 (n,)."""
        vectors = np.empty((len(rows), self.settings.dimension), np.float32)
        for selection in self._docids.by_column(rows):
            vectors[selection.mask] = self.shards[selection.column].vectors[selection.rows]
        return vectors


class DenseShardWriter(ShardWriter[Settings, NDArray[np.float32]]):
    """A context in which passages are appended to a shard of a dense bundle.

    Vectors are float32 (n, d).
    """

    def begin(self) -> None:
        self._vectors = self.stream(VECTORS, self._settings.dtype, (self._settings.dimension,))

    def write(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        stored = vectors.astype(self._settings.dtype)
        is_finite = np.isfinite(stored).all(axis=1)
        if not is_finite.all():
            first = int(np.flatnonzero(~is_finite)[0])
            bad = passages[first].docid
            raise DamagedFileError(
                f"the vector of passage '{bad}' is not finite in {self._settings.dtype}: check the "
                'checkpoint, or store and compute in float32'
            )
        self._vectors.append(stored)

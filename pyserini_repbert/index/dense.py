"""The dense bundle: memory-mapped vectors and docids in shards, and the texts where stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.arrays import check_finite
from pyserini_repbert.index.bundle import Bundle, Shard, mapped
from pyserini_repbert.index.overlap import Shorten, measure_overlap
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors, stored_as
from pyserini_repbert.index.records import (
    SCALES,
    VECTORS,
    WHOLE,
    DenseSettings,
    Overlap,
    ShardRecord,
)
from pyserini_repbert.index.sample import mean_vector, sample_positions
from pyserini_repbert.index.shard_writer import NpyStream, ShardWriter

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import Passage


class DenseShard(Shard):
    """One shard: `vectors`, float32, float16 or int8 (count, d), memory-mapped."""

    def __init__(self, folder: Path, record: ShardRecord, settings: DenseSettings) -> None:
        super().__init__(folder, record, settings)
        shape = (record.count, settings.dimension)
        self.vectors = mapped_vectors(folder, settings.dtype, shape)

    def check_values(self) -> None:
        """Read all vectors. Raises DamagedFileError for values that are not finite."""
        check_finite(self.vectors, self.folder / VECTORS)


def mapped_vectors(folder: Path, dtype: str, shape: tuple[int, int]) -> StoredVectors:
    """The vectors of a shard's folder, memory-mapped.

    Parameters
    ----------
    folder : of the shard
    dtype, shape : what its files must hold

    Raises DamagedFileError for a file that is missing or holds something else.
    """
    # 'c', copy-on-write: PyTorch warns of read-only arrays. What is written to these does not
    # reach the file.
    vectors = mapped(folder / VECTORS, dtype, shape, 'c')
    if vectors.dtype != np.int8:
        return vectors
    return Int8Vectors(vectors, mapped(folder / SCALES, np.float32, shape[:1], 'c'))


class DenseBundle(Bundle[DenseSettings, DenseShard]):
    """An index folder of vectors; its parameters are as in `Bundle`."""

    settings_kind = DenseSettings
    shard_kind = DenseShard

    def blocks(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, StoredVectors]]:
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

    @cached_property
    def sample(self) -> NDArray[np.float32]:
        """A sample of the vectors, float32 (m, d)."""
        return self.vectors(sample_positions(len(self)))

    @cached_property
    def sample_mean(self) -> NDArray[np.float32]:
        """The mean of the sample, float32 (d,)."""
        return mean_vector(self.sample)


class DenseShardWriter(ShardWriter[DenseSettings, NDArray[np.float32]]):
    """A context in which passages are appended to a shard of a dense bundle.

    Vectors are float32 (n, D), as the model gives them. If they are stored in fewer bytes, the
    shard's record says what that loses. Until it is complete, its folder has a copy of them.

    Parameters
    ----------
    target, settings : as in `ShardWriter`
    shorten : makes vectors float32 (n, d) of those that are given; None: D is d
    """

    def __init__(
        self, target: Path, settings: DenseSettings, shorten: Shorten | None = None
    ) -> None:
        super().__init__(target, settings)
        self._shorten = shorten or _unchanged
        self._is_whole = shorten is None and settings.dtype == 'float32'
        self._whole: NpyStream | None = None
        self._scales: NpyStream | None = None

    def begin(self) -> None:
        self._vectors = self.stream(VECTORS, self._settings.dtype, (self._settings.dimension,))
        if self._settings.dtype == 'int8':
            self._scales = self.stream(SCALES, np.float32)

    def write(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        stored = stored_as(self._shorten(vectors), self._settings.dtype)
        is_finite = np.isfinite(np.asarray(stored)).all(axis=1)
        if not is_finite.all():
            first = int(np.flatnonzero(~is_finite)[0])
            bad = passages[first].docid
            raise DamagedFileError(
                f"the vector of passage '{bad}' is not finite in {self._settings.dtype}: check the "
                'checkpoint, or store and compute in float32'
            )
        if isinstance(stored, Int8Vectors) and self._scales is not None:
            self._vectors.append(stored.numbers)
            self._scales.append(stored.scales)
        else:
            self._vectors.append(stored)
        if not self._is_whole:
            self._write_whole(vectors)

    def _write_whole(self, vectors: NDArray[np.float32]) -> None:
        """Keep what the model gave, until the shard is finished."""
        if self._whole is None:
            self._whole = self.stream(WHOLE, np.float32, vectors.shape[1:])
        self._whole.append(vectors)

    def finish(self) -> Overlap | None:
        if self._whole is None:
            return None
        whole = np.load(self._folder / WHOLE, mmap_mode='r')
        shape = (len(whole), self._settings.dimension)
        stored = mapped_vectors(self._folder, self._settings.dtype, shape)
        overlap = measure_overlap(whole, stored, self._shorten)
        (self._folder / WHOLE).unlink()
        return overlap


def _unchanged(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors

"""The dense bundle, for writing: shards that appear only when whole, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.records import VECTORS, Settings
from pyserini_repbert.index.shard_writer import ShardWriter


class DenseShardWriter(ShardWriter[Settings, NDArray[np.float32]]):
    """A context in which passages and their vectors, float32 (n, d), are appended to a shard of a dense bundle."""

    def begin(self) -> None:
        """Open the file of vectors."""
        self._vectors = self.stream(VECTORS, self._settings.dtype, (self._settings.dimension,))

    def write(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        """Write vectors. Raises DamagedFileError for a vector that is not finite in the stored dtype."""
        stored = vectors.astype(self._settings.dtype)
        if not np.isfinite(stored).all():
            bad = passages[int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])].docid
            raise DamagedFileError(
                f"the vector of passage '{bad}' is not finite in {self._settings.dtype}: "
                'check the checkpoint, or store and compute in float32'
            )
        self._vectors.append(stored)

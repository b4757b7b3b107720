"""Shards that keep encoded passages until there are enough for a shard of the collection.

A slow encoder takes minutes for such a shard. Its results are written at least every ten seconds,
so an interrupted command loses no more than that. No row of the collection names these shards; the
next writer finds the vectors in them, as in all shards that were left (`VectorSource`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.shards import (
    INPUT_BYTES,
    SHARD_FORM,
    SHARDS,
    ShardRows,
    write_shard,
)
from pyserini_repbert.encode.representations import RepresentationModel
from pyserini_repbert.extension import Representation

KEPT_SECONDS = 10.0
# Replaced by tests.
clock = time.monotonic


@dataclass(frozen=True)
class Encoded:
    """What models gave for an input: its vector, and further values by `Representation.name`."""

    vector: NDArray[np.float32]
    further: Mapping[str, Any] = field(default_factory=dict)

    def with_value(self, kind: Representation, value: Any) -> Encoded:
        """The same, with what a further model gave."""
        return replace(self, further={**self.further, kind.name: value})


class SpareShards:
    """Keeps encoded passages while a shard of the collection is being made.

    Parameters
    ----------
    folder : the collection's
    generation : the number of the next generation
    dtype : the type in which vectors are stored
    models : the collection's further models
    """

    def __init__(
        self,
        folder: Path,
        generation: int,
        dtype: str,
        models: Mapping[Representation, RepresentationModel],
    ) -> None:
        self._parent = folder / SHARDS
        self._generation = generation
        self._dtype = dtype
        self._models = models
        self._pending: dict[bytes, Encoded] = {}
        self._names: list[str] = []
        self._since = clock()
        self._last = self._since

    def begin(self) -> None:
        """Measure from now on: encoding begins."""
        self._last = clock()
        if not self._pending:
            self._since = self._last

    def add(self, digest: bytes, encoded: Encoded) -> None:
        """Take encoded values, by the digests of their inputs; `keep` may write it."""
        self._pending[digest] = encoded

    def keep(self) -> None:
        """Write what was added, if it cannot wait until the same amount again is encoded."""
        now = clock()
        next_time = now + (now - self._last)
        self._last = now
        if next_time - self._since < KEPT_SECONDS:
            return
        # A shard has the same of all its rows.
        groups: dict[frozenset[str], list[bytes]] = defaultdict(list)
        for digest, encoded in self._pending.items():
            groups[frozenset(encoded.further)].append(digest)
        for digests in groups.values():
            self._write(digests)
        self._pending = {}
        self._since = now

    def remove(self, but: str) -> None:
        """Remove the shards that were written, because the collection now has their content.

        `but` is the name of the collection's shard.
        """
        for name in self._names:
            if name != but:
                SHARD_FORM.remove(self._parent / name)
        self._names = []
        self._pending = {}

    def _write(self, digests: Sequence[bytes]) -> None:
        further = {}
        for kind, model in self._models.items():
            if kind.name in self._pending[digests[0]].further:
                values = [self._pending[digest].further[kind.name] for digest in digests]
                further[kind.name] = kind.work.rows(values, model)
        rows = ShardRows(
            vectors=np.array([self._pending[digest].vector for digest in digests], np.float32),
            # Of no document.
            documents=np.full(len(digests), -1, np.int32),
            numbers=np.zeros(len(digests), np.int32),
            inputs=np.frombuffer(b''.join(digests), np.uint8).reshape(-1, INPUT_BYTES),
            further=further,
        )
        shard = write_shard(self._parent, rows, self._generation, self._dtype)
        self._names.append(shard.name)

"""Shards that keep what is encoded until there is enough for a shard of the collection.

A slow encoder takes minutes for one. What it has encoded is written at the latest every ten
seconds, so that an interrupted command loses no more. No row of the collection names these shards;
the next writer finds the vectors in them, as in all shards that were left (`VectorSource`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.shards import (
    INPUT_BYTES,
    SHARD_FORM,
    SHARDS,
    ShardRows,
    write_shard,
)
from pyserini_repbert.collection.sparse_model import SparseModel
from pyserini_repbert.collection.term_rows import TermRows
from pyserini_repbert.models.term_vectors import TermVector

KEPT_SECONDS = 10.0
# Replaced by tests.
clock = time.monotonic


@dataclass(frozen=True)
class Encoded:
    """What a model gave for an input: its vector, and the weights of its terms, if it has any."""

    vector: NDArray[np.float32]
    terms: TermVector | None = None


class SpareShards:
    """Keeps what is encoded while a shard of the collection is being made.

    Parameters
    ----------
    folder : the collection's
    generation : the number of the next generation
    dtype : the type in which vectors are stored
    sparse_model : weighs the terms of passages; None: they are not weighed
    """

    def __init__(
        self, folder: Path, generation: int, dtype: str, sparse_model: SparseModel | None = None
    ) -> None:
        self._parent = folder / SHARDS
        self._generation = generation
        self._dtype = dtype
        self._sparse_model = sparse_model
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
        """Take what was encoded, by the digest of its input; `keep` may write it."""
        self._pending[digest] = encoded

    def keep(self) -> None:
        """Write what was added, if it could not wait until as much again is encoded."""
        now = clock()
        next_time = now + (now - self._last)
        self._last = now
        if next_time - self._since < KEPT_SECONDS:
            return
        complete = [digest for digest, each in self._pending.items() if each.terms is not None]
        bare = [digest for digest, each in self._pending.items() if each.terms is None]
        for digests in (complete, bare):
            if digests:
                self._write(digests)
        self._pending = {}
        self._since = now

    def remove(self, but: str) -> None:
        """Remove the shards that were written: the collection has what they keep.

        `but` is the name of the collection's shard.
        """
        for name in self._names:
            if name != but:
                SHARD_FORM.remove(self._parent / name)
        self._names = []
        self._pending = {}

    def _write(self, digests: Sequence[bytes]) -> None:
        terms = []
        for digest in digests:
            weights = self._pending[digest].terms
            if weights is not None:
                terms.append(weights)
        rows = ShardRows(
            vectors=np.array([self._pending[digest].vector for digest in digests], np.float32),
            # Of no document.
            documents=np.full(len(digests), -1, np.int32),
            numbers=np.zeros(len(digests), np.int32),
            inputs=np.frombuffer(b''.join(digests), np.uint8).reshape(-1, INPUT_BYTES),
            terms=TermRows.of(terms, self._sparse_model) if terms and self._sparse_model else None,
        )
        shard = write_shard(self._parent, rows, self._generation, self._dtype)
        self._names.append(shard.name)

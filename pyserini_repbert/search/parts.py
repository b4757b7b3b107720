"""Vectors in blocks, and the parts of an index that share them. Nothing here needs PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from pyserini_repbert.index.quantized import StoredVectors


class Blocks(Protocol):
    """Vectors that can be read in blocks, any number of times."""

    def __len__(self) -> int:
        """Number of vectors."""

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """(first row, vectors (n, d)) of at most `size` rows each, in order."""


class IndexPart:
    """Consecutive rows of an index, with what searches compute of them once.

    Indexes may share a part: generations of a collection share shards.

    Attributes
    ----------
    vectors : the rows
    largest : the greatest absolute value of each block, by the block's first row
    copies : the rounded copies of the rows, by class (`rounded`)
    n_queries : how many queries were searched without a rounded copy
    """

    def __init__(self, vectors: Blocks) -> None:
        self.vectors = vectors
        self.largest: dict[int, float] = {}
        self.copies: dict[type, Any] = {}
        self.n_queries = 0


class ArrayVectors:
    """Vectors in memory, (n, d), as `Blocks`."""

    def __init__(self, vectors: StoredVectors) -> None:
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self._vectors)

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """As in `Blocks`."""
        for first in range(0, len(self._vectors), size):
            yield first, self._vectors[first : first + size]

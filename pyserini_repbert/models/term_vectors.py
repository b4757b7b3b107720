"""Sparse vectors over a vocabulary: single vectors, many vectors in three arrays, and pruning to
the largest weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, slots=True)
class TermVector:
    """One sparse vector."""

    terms: NDArray[np.int64]  # (m,), ids in the vocabulary, strictly ascending
    weights: NDArray[np.float32]  # (m,)

    @classmethod
    def summed(
        cls,
        terms: Sequence[int] | NDArray[np.int64],
        weights: Sequence[float] | NDArray[np.float32],
    ) -> TermVector:
        """From term ids in any order; the weights of a repeated term are summed (EPIC section
        2).
        """
        given = np.asarray(terms, dtype=np.int64)
        values = np.asarray(weights, dtype=np.float64)
        distinct, positions = np.unique(given, return_inverse=True)
        sums = np.bincount(positions, weights=values, minlength=len(distinct))
        return cls(distinct, sums.astype(np.float32))

    def __len__(self) -> int:
        return len(self.terms)

    def as_dict(self) -> dict[int, float]:
        """{term id: weight}, ascending."""
        return dict(zip(self.terms.tolist(), self.weights.tolist(), strict=True))

    def weights_of(self, terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """The weights of `terms`, int64 (n,): float32 (n,), 0 for a term that this vector lacks."""
        values = np.zeros(len(terms), dtype=np.float32)
        if not len(self.terms):
            return values
        positions = np.searchsorted(self.terms, terms)
        positions = np.minimum(positions, len(self.terms) - 1)
        is_here = self.terms[positions] == terms
        values[is_here] = self.weights[positions[is_here]]
        return values

    def dot(self, other: TermVector) -> float:
        """The inner product in float64: the score of a query and a passage (EPIC eq. 5)."""
        return float(np.dot(self.weights.astype(np.float64), other.weights_of(self.terms)))


NO_TERMS = TermVector(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True, eq=False, slots=True)
class TermVectors(Sequence[TermVector]):
    """Many sparse vectors, one after the other."""

    offsets: NDArray[np.int64]  # (n + 1,), where each vector starts, and where the last one ends
    terms: NDArray[np.int64]  # (total,), strictly ascending within a vector
    weights: NDArray[np.float32]  # (total,)

    @classmethod
    def of(cls, vectors: Iterable[TermVector]) -> TermVectors:
        """Join single vectors."""
        vector_list = [NO_TERMS, *vectors]
        offsets = np.cumsum([len(vector) for vector in vector_list], dtype=np.int64)
        terms = np.concatenate([vector.terms for vector in vector_list])
        weights = np.concatenate([vector.weights for vector in vector_list])
        return cls(offsets, terms, weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> TermVector:  # type: ignore[override]
        start = self.offsets[row]
        end = self.offsets[row + 1]
        return TermVector(self.terms[start:end], self.weights[start:end])


def largest(
    weights: NDArray[np.float32], r: int, terms: NDArray[np.int64] | None = None
) -> TermVector:
    """The r largest weights of a vector, 0 for all (EPIC section 3, 'pruning'); ties go to the
    lowest terms; no zeros.

    `terms`, int64 (m,), ascending, are the term ids of `weights`, float32 (m,); by default 0 to m -
    1.
    """
    kept = np.arange(len(weights))
    if 0 < r < len(weights):
        position = len(weights) - r
        least = np.partition(weights, position)[position]
        above = np.flatnonzero(weights > least)
        equal = np.flatnonzero(weights == least)
        kept = np.concatenate([above, equal[: r - len(above)]])
        kept.sort()
    kept = kept[weights[kept] != 0]
    kept_terms = kept
    if terms is not None:
        kept_terms = terms[kept]
    return TermVector(kept_terms, weights[kept])


def complete(weights: NDArray[np.float32]) -> TermVectors:
    """The rows of float32 (n, |V|) as vectors of all |V| terms, zeros included."""
    n, vocabulary = weights.shape
    offsets = np.arange(0, n * vocabulary + 1, vocabulary, dtype=np.int64)
    terms = np.tile(np.arange(vocabulary), n)
    return TermVectors(offsets, terms, weights.reshape(-1))

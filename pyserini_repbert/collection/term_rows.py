"""Weights of terms of a shard's rows, as its files have them.

- `offsets.npy`: int64 (n + 1,), where each row begins, and where the last one ends
- `terms.npy`: uint16 (total,), or uint32 for more than 65,536 terms; ascending within a row
- `weights.npy`: float32 (total,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyserini_repbert.collection.sparse_model import SparseModel
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

# The files, and the attributes of `TermRows`.
TERM_FILES = ('offsets', 'terms', 'weights')
# Rows that are selected at a time.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class TermRows:
    """The weights of many rows, one row after the other.

    Attributes
    ----------
    model : the `SparseModel.key` of the model that made them
    vocabulary : the number of terms |V|
    offsets, terms, weights : as the module describes
    """

    model: str
    vocabulary: int
    offsets: NDArray[np.int64]
    terms: NDArray[np.unsignedinteger]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Sequence[TermVector], model: SparseModel) -> TermRows:
        """The vectors that a model made.

        Raises DamagedFileError for a weight that is not finite.
        """
        together = TermVectors.of(vectors)
        if not np.isfinite(together.weights).all():
            raise DamagedFileError(
                f"the sparse model '{model.encoder}' gives a weight that is not finite: check its "
                'files, or compute in float32'
            )
        terms = together.terms.astype(term_dtype(model.vocabulary))
        return cls(model.key(), model.vocabulary, together.offsets, terms, together.weights)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def vector(self, row: int) -> TermVector:
        """The weights of a row."""
        return self.vectors(row, row + 1)[0]

    def vectors(self, first: int, end: int) -> TermVectors:
        """The weights of the rows from `first` to before `end`."""
        offsets = self.offsets[first : end + 1]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        terms = self.terms[inside].astype(np.int64)
        return TermVectors(offsets - offsets[0], terms, self.weights[inside])

    def select(self, rows: NDArray[np.int64]) -> TermRows:
        """A copy of rows, int64 (m,), in their order."""
        counts = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        terms = np.empty(offsets[-1], self.terms.dtype)
        weights = np.empty(offsets[-1], np.float32)
        for first in range(0, len(rows), _ROWS):
            some = slice(first, first + _ROWS)
            begins = self.offsets[rows[some]]
            starts = offsets[:-1][some]
            inside = slice(int(starts[0]), int(starts[-1] + counts[some][-1]))
            positions = np.repeat(begins - starts, counts[some])
            positions += np.arange(inside.start, inside.stop)
            terms[inside] = self.terms[positions]
            weights[inside] = self.weights[positions]
        return replace(self, offsets=offsets, terms=terms, weights=weights)


def joined_rows(parts: Sequence[TermRows]) -> TermRows:
    """The rows of one part or more after each other; all are of one model."""
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return replace(
        parts[0],
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        terms=np.concatenate([part.terms for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
    )


def term_dtype(vocabulary: int) -> DTypeLike:
    """The type of `terms.npy`."""
    return np.uint16 if vocabulary <= 1 << 16 else np.uint32

"""Inner products of queries with an index's vectors: the score of a pair, and which pairs can reach a threshold.

A score is FAISS's float32 inner product of the pair. It depends on nothing else: not on other rows or queries, nor on
the number of threads. Matrix products are many times faster and round otherwise, so they only tell which pairs to
score. A bound of the difference makes sure that no pair is missed. With g = d 2^-24:

- a sum of d products in float32, in any order, errs by at most g times the sum of all |q_i x_i|, thus by g |q| |x|
- with q' and x' for q and x in bfloat16, q.x and q'.x' differ by at most |q - q'| |x| + |q'| |x - x'|
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.ann import faiss_threads

BLOCK_ROWS = 16384
SAMPLE_ROWS = 2048  # from which thresholds are estimated
_FEW = 16384  # pairs that one thread scores in about the time that others take to wake
_CONVERTED = 16384  # pairs whose float16 rows are converted to float32 together
_TINY = 2.0**-125  # more than any product or summand that a processor may take for zero
_OVERFLOWS = 2.0**120  # sums below it are finite however they are rounded
_WEIGHTS = 4  # columns of a rounded vector beside its values
_UP = 1 + 2**-7  # a factor that outweighs rounding to bfloat16, and g times a bound
_SHORTEST, _LONGEST = 2.0**-40, 2.0**60  # norms whose products neither underflow nor overflow
_SLACK = 2.0**-55  # is added to norms: more than they lose where squares and products underflow


class Blocks(Protocol):
    """Vectors that can be read in blocks, any number of times."""

    def __len__(self) -> int:
        """Number of vectors."""

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """(first row, float32 or float16 (n, d)) of at most `size` rows each, in order."""


def scores(
    queries: NDArray[np.float32],
    vectors: NDArray[np.floating],
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The score of each pair: its inner product (RepBERT eq. 3), float32 (m,).

    `rows` and `owners` are, of each pair, the row of `vectors`, float32 or float16 (n, d), and of `queries`.
    """
    import faiss

    engine: Any = faiss  # its annotations lack the functions that SWIG generates
    products = np.empty(len(rows), np.float32)
    if vectors.dtype == np.float32:
        arrays = [np.ascontiguousarray(array) for array in (queries, owners, vectors, rows)]
        pointers = (engine.swig_ptr(array) for array in (*arrays, products))
        with faiss_threads(1 if len(rows) < _FEW else torch.get_num_threads()):
            engine.pairwise_indexed_inner_product(queries.shape[1], len(rows), *pointers)
        return products
    for first in range(0, len(rows), _CONVERTED):
        part = slice(first, first + _CONVERTED)
        used, places = np.unique(rows[part], return_inverse=True)
        products[part] = scores(queries, torch.from_numpy(vectors[used]).float().numpy(), places, owners[part])
    return products


class Float32Products:
    """Products of queries, float32 (n, d), with an index's vectors in float32, on any device.

    `largest` has the greatest absolute value of each block, by the block's first row; it is completed here.
    """

    block_rows = BLOCK_ROWS

    def __init__(
        self, index: Blocks, queries: NDArray[np.float32], device: torch.device, largest: dict[int, float]
    ) -> None:
        self._index, self._largest = index, largest
        self._queries = torch.from_numpy(queries).to(device)
        self._sums = self._queries.abs().sum(dim=1)
        self._last: tuple[int, Tensor] = -1, self._sums  # a block's first row, and its products

    def sample(self) -> Tensor:
        """Products with about `SAMPLE_ROWS` rows, evenly spaced, since a corpus may be ordered by topic."""
        step = max(1, len(self._index) // SAMPLE_ROWS)
        blocks = self._index.blocks(self.block_rows)
        return self._products(np.concatenate([vectors[-first % step :: step] for first, vectors in blocks]))

    def lowest(self, k: int) -> Tensor:
        """Scores that k rows of the first block reach, float32 (n queries,); -inf in a block of at most k rows."""
        first, vectors = next(self._index.blocks(self.block_rows))
        if k >= len(vectors):
            return torch.full((len(self._queries),), -math.inf)
        self._last = first, self._products(vectors)
        kth = torch.topk(self._last[1], k, dim=1, sorted=False).values.amin(dim=1)
        return (kth - self._errors(first, vectors)).nan_to_num(nan=-math.inf).cpu()

    def reaching(
        self, first: int, vectors: NDArray[np.floating], thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of a block and their queries: all pairs whose scores reach the query's threshold, and some others."""
        errors = self._errors(first, vectors)
        products = self._last[1] if first == self._last[0] else self._products(vectors)
        mask = products >= (thresholds.to(errors.device) - errors)[:, None]
        if errors.isinf().any():
            mask[errors.isinf()] = True
        if mask.device.type == 'cpu':
            pairs = np.flatnonzero(mask.T.numpy())
        else:
            pairs = mask.T.reshape(-1).nonzero().squeeze(1).cpu().numpy()
        rows, owners = np.divmod(pairs, len(self._queries))
        return rows, owners

    def _products(self, vectors: NDArray[np.floating]) -> Tensor:
        """float32 (n queries, n rows); in memory rows come first, which is faster with BLAS."""
        return (torch.from_numpy(vectors).to(self._queries.device).float() @ self._queries.T).T

    def _errors(self, first: int, vectors: NDArray[np.floating]) -> Tensor:
        """How far a block's products may be from scores, float32 (n queries,); inf where sums may overflow."""
        if first not in self._largest:
            lowest, highest = torch.from_numpy(vectors).aminmax()
            self._largest[first] = max(-float(lowest), float(highest))
        largest, dimension = self._largest[first], vectors.shape[1]
        totals = self._sums * largest  # no less than the sum of all |q_i x_i|
        errors = (dimension + 8) * 2.0**-23 * totals + _TINY * (self._sums + dimension * largest + dimension)
        return torch.where(totals < _OVERFLOWS, errors, math.inf)


class RoundedVectors:
    """An index's vectors in bfloat16, in memory, with the norms that bound the errors of products with them.

    Each vector x' has four weights beside it: |x - x'|, |x|, 1 and 1. A query q' has |q'|, |q - q'| + 2 g |q| and the
    threshold, negative, in two summands. If the product of both is negative, the score is below the threshold. The
    weights are rounded up; that exceeds all errors in the sum of the weights' products.

    Attributes
    ----------
    vectors : bfloat16 (n, d and the weights, and zeros to a multiple of 16)
    sample : some of them, evenly spaced
    usable : whether all norms are finite and their products cannot overflow
    """

    def __init__(self, index: Blocks, dimension: int) -> None:
        self.vectors = torch.zeros(len(index), self.width(dimension), dtype=torch.bfloat16)
        longest = torch.zeros(())
        for first, vectors in index.blocks(BLOCK_ROWS // 8):  # they stay in cache
            exact = torch.from_numpy(vectors).float()
            rounded, weights = self.vectors[first : first + len(exact)].split_with_sizes(
                [dimension, self.vectors.shape[1] - dimension], dim=1
            )
            rounded[:] = exact
            norms = torch.linalg.vector_norm(torch.stack([exact - rounded, exact], dim=1), dim=2)
            weights[:, :2] = norms * _UP + _SLACK
            weights[:, 2:_WEIGHTS] = 1
            longest = torch.maximum(longest, norms.max())  # NaN stays
        self.usable = bool(longest <= _LONGEST)
        self.sample = self.vectors[:: max(1, len(index) // min(16384, max(4096, len(index) // 64)))].contiguous()

    @staticmethod
    def width(dimension: int) -> int:
        """The length of a rounded vector with its weights."""
        return -(-(dimension + _WEIGHTS) // 16) * 16


class RoundedProducts:
    """Products of queries, float32 (n, d), with rounded vectors, summed in float32 on the CPU."""

    def __init__(self, rounded: RoundedVectors, queries: NDArray[np.float32]) -> None:
        exact = torch.from_numpy(queries).double()
        count, dimension = exact.shape
        # With AMX, vectors first and at least two queries are fastest (the second may be zero); else, queries first.
        self._vectors_first = torch.cpu._is_amx_tile_supported()
        columns = max(2 if self._vectors_first else 1, count)
        self._queries = torch.zeros(columns, rounded.vectors.shape[1], dtype=torch.bfloat16)
        self._queries[:count, :dimension] = exact.float()
        nearest = self._queries[:count, :dimension].double()
        norms = torch.linalg.vector_norm(torch.stack([nearest, exact - nearest, exact]), dim=2)
        self._g = (dimension + 8) * 2.0**-24
        self._weights = torch.stack([norms[0], norms[1] + 2 * self._g * norms[2]], dim=1) * _UP
        self._rounded, self._dimension, self._count = rounded, dimension, count
        self.usable = bool(((norms[2] >= _SHORTEST) & (norms[2] <= _LONGEST)).all())
        self.block_rows = max(BLOCK_ROWS, 256 * BLOCK_ROWS // count)

    def sample(self) -> Tensor:
        """Products with a sample of the vectors, bfloat16 (n queries, m)."""
        self._queries[:, self._dimension :] = 0
        return (self._rounded.sample @ self._queries.T).T[: self._count]

    def reaching(
        self, first: int, vectors: NDArray[np.floating], thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As of `Float32Products`."""
        limits = thresholds.double()
        limits -= (2 * self._g + 2.0**-15) * limits.abs()  # for the errors of its sum, and of its two summands
        weights = self._queries[: self._count, self._dimension :]
        weights[:, :2] = self._weights
        weights[:, 2] = -limits
        weights[:, 3] = -limits - weights[:, 2]
        rounded = self._rounded.vectors[first : first + len(vectors)]
        if self._vectors_first:
            signs = (rounded @ self._queries.T).view(torch.int16).numpy()[:, : self._count]
            rows, owners = np.divmod(np.flatnonzero(signs >= 0), self._count)
        else:
            signs = (self._queries @ rounded.T).view(torch.int16).numpy()
            owners, rows = np.divmod(np.flatnonzero(signs >= 0), len(vectors))
        return rows, owners

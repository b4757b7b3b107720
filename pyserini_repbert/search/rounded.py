"""Copies of an index's vectors in fewer bits: they tell which pairs can reach a threshold.

With q' and x' for a query q and a vector x, rounded, q.x and q'.x' differ by at most |q - q'| |x| +
|q'| |x - x'|. To this come the errors of a score and of the product: g |q| |x| each, as in
`products`. Many queries are multiplied in bfloat16. One query takes as long as reading the
vectors, so it is multiplied in int8, which has half of the bytes; the wider bound leaves a few
times k pairs to score (benchmarks/exact_search.py).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.search.products import BLOCK_ROWS, Blocks, tensor_of

# Columns of a vector in bfloat16 beside its values.
_WEIGHTS = 4
# A factor that outweighs rounding to bfloat16, and g times a bound.
_UP = 1 + 2**-7
# Norms between these have products that neither underflow nor overflow.
_SHORTEST = 2.0**-40
_LONGEST = 2.0**60
# It is added to norms: more than they lose where squares and products underflow.
_SLACK = 2.0**-55
_INT8 = 127
_SMALLEST_SCALE = 2.0**-60
# From so many queries on, it is faster that each thread works on blocks of its own.
_IN_THREADS = 64
# Rows of such a block.
_ROWS = 4096
# Products that are computed at once.
_AT_ONCE = 256 * BLOCK_ROWS


def _sampled(count: int) -> slice:
    """Some of `count` rows, evenly spaced, since a corpus may be ordered by topic."""
    return slice(None, None, max(1, count // min(16384, max(4096, count // 64))))


class RoundedVectors:
    """An index's vectors in bfloat16, in memory, with norms that bound the errors of products.

    Each vector x' has four weights beside it: |x - x'|, |x|, 1 and 1. A query q' has |q'|, |q - q'|
    + 2 g |q| and the threshold, negative, in two summands. If the product of both is negative, the
    score is below the threshold. The weights are rounded up; that exceeds all errors in the sum of
    the weights' products.

    Parameters
    ----------
    index : the vectors
    dimension : length of a vector

    Attributes
    ----------
    vectors : bfloat16 (n, d and the weights, and zeros to a multiple of 16)
    sample : some of them, evenly spaced
    usable : whether all norms are finite and their products cannot overflow
    """

    def __init__(self, index: Blocks, dimension: int) -> None:
        self.vectors = torch.zeros(len(index), self.size(dimension) // 2, dtype=torch.bfloat16)
        longest = torch.zeros(())
        # Blocks of this size stay in the CPU's cache.
        for first, vectors in index.blocks(BLOCK_ROWS // 8):
            exact = tensor_of(vectors).float()
            rows = self.vectors[first : first + len(exact)]
            rounded, weights = rows.tensor_split([dimension], dim=1)
            rounded[:] = exact
            norms = torch.linalg.vector_norm(torch.stack([exact - rounded, exact], dim=1), dim=2)
            weights[:, :2] = norms * _UP + _SLACK
            weights[:, 2:_WEIGHTS] = 1
            # A norm that is NaN stays NaN.
            longest = torch.maximum(longest, norms.max())
        self.usable = bool(longest <= _LONGEST)
        self.sample = self.vectors[_sampled(len(index))].contiguous()

    @staticmethod
    def size(dimension: int) -> int:
        """Bytes of a rounded vector with its weights."""
        return -(-(dimension + _WEIGHTS) // 16) * 32


class RoundedProducts:
    """Products of queries, float32 (n, d), with rounded vectors, summed in float32 on the CPU."""

    def __init__(self, rounded: RoundedVectors, queries: NDArray[np.float32]) -> None:
        exact = torch.from_numpy(queries).double()
        count, dimension = exact.shape
        # With AMX, products with the vectors first are faster; without, those with queries first.
        self._vectors_first = torch.cpu._is_amx_tile_supported()
        self._queries = torch.zeros(count, rounded.vectors.shape[1], dtype=torch.bfloat16)
        self._queries[:, :dimension] = exact.float()
        nearest = self._queries[:, :dimension].double()
        norms = torch.linalg.vector_norm(torch.stack([nearest, exact - nearest, exact]), dim=2)
        self._g = (dimension + 8) * 2.0**-24
        self._weights = torch.stack([norms[0], norms[1] + 2 * self._g * norms[2]], dim=1) * _UP
        self._rounded = rounded
        self._dimension = dimension
        self._count = count
        self.usable = bool(((norms[2] >= _SHORTEST) & (norms[2] <= _LONGEST)).all())
        self.is_for_threads = count >= _IN_THREADS and torch.get_num_threads() > 1
        self.block_rows = _ROWS if count >= _IN_THREADS else max(BLOCK_ROWS, _AT_ONCE // count)

    def sample(self, allowed: NDArray[np.bool_] | None = None) -> Tensor:
        """Products with a sample of the vectors that are allowed, bfloat16 (n queries, m)."""
        self._queries[:, self._dimension :] = 0
        sample = self._rounded.sample
        if allowed is not None:
            sample = sample[torch.from_numpy(allowed[_sampled(len(allowed))])]
        return (sample @ self._queries.T).T

    def reaching(
        self, first: int, vectors: StoredVectors, thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As of `Float32Products`."""
        limits = thresholds.double()
        # Lowered for the errors of the threshold's sum, and of its two summands.
        limits -= (2 * self._g + 2.0**-15) * limits.abs()
        # Other threads have other thresholds.
        queries = self._queries.clone()
        weights = queries[:, self._dimension :]
        weights[:, :2] = self._weights
        weights[:, 2] = -limits
        weights[:, 3] = -limits - weights[:, 2]
        rounded = self._rounded.vectors[first : first + len(vectors)]
        if self._vectors_first:
            signs = (rounded @ queries.T).view(torch.int16).numpy()
            rows, owners = np.divmod(np.flatnonzero(signs >= 0), self._count)
        else:
            signs = (queries @ rounded.T).view(torch.int16).numpy()
            owners, rows = np.divmod(np.flatnonzero(signs >= 0), len(vectors))
        return rows, owners


class ByteVectors:
    """An index's vectors in int8.

    A vector x' is a scale, float32, times whole numbers from -127 to 127.

    Parameters
    ----------
    index : the vectors
    dimension : length of a vector

    Attributes
    ----------
    vectors, scales : int8 (n, d) and float32 (n,)
    norms : |x - x'| and |x|, rounded up: float32 (n, 2)
    usable : as of `RoundedVectors`
    """

    def __init__(self, index: Blocks, dimension: int) -> None:
        self.vectors = torch.empty(len(index), dimension, dtype=torch.int8)
        self.scales = torch.empty(len(index))
        self.norms = torch.empty(len(index), 2)
        # Blocks of this size stay in the CPU's cache.
        for first, vectors in index.blocks(BLOCK_ROWS // 8):
            rows = slice(first, first + len(vectors))
            exact = tensor_of(vectors).float()
            self.vectors[rows], self.scales[rows], errors = _in_bytes(exact)
            norms = torch.linalg.vector_norm(torch.stack([errors, exact], dim=1), dim=2)
            self.norms[rows] = norms * _UP + _SLACK
        # PyTorch 2.13 multiplies single columns of int8 wrongly.
        self.usable = dimension > 1 and bool(self.norms.max() <= _LONGEST)

    @staticmethod
    def size(dimension: int) -> int:
        """Bytes of a vector, its scale and its norms."""
        return dimension + 12


class ByteProducts:
    """Products of one query, float32 (1, d), with vectors in int8.

    They are sums of whole numbers, without an error, times the scales. The scaling, and the sum
    with the bound, round four times, which is less than g.
    """

    block_rows = _AT_ONCE

    def __init__(self, rounded: ByteVectors, queries: NDArray[np.float32]) -> None:
        exact = torch.from_numpy(queries)
        self._query, self._scale, errors = _in_bytes(exact)
        nearest, error, norm = torch.linalg.vector_norm(
            torch.stack([exact - errors, errors, exact]).double(), dim=2
        )
        g = (exact.shape[1] + 8) * 2.0**-24
        self._weights = torch.cat([nearest, error + 2 * g * norm]).float() * _UP
        self._rounded = rounded
        self.usable = bool(_SHORTEST <= norm <= _LONGEST)

    def sample(self, allowed: NDArray[np.bool_] | None = None) -> Tensor:
        """Products with a sample of the vectors that are allowed, float32 (1, m)."""
        rows = _sampled(len(self._rounded.scales))
        products = self._products(rows)
        if allowed is not None:
            products = products[torch.from_numpy(allowed[rows])]
        return products[None]

    def reaching(
        self, first: int, vectors: StoredVectors, thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As of `Float32Products`."""
        rows = slice(first, first + len(vectors))
        highest = self._products(rows).add_(self._rounded.norms[rows] @ self._weights)
        reach = np.flatnonzero((highest >= thresholds).numpy())
        return reach, np.zeros_like(reach)

    def _products(self, rows: slice) -> Tensor:
        whole = torch._int_mm(self._query, self._rounded.vectors[rows].T)[0]
        return whole.float().mul_(self._rounded.scales[rows] * self._scale)


def _in_bytes(vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors, float32 (n, d), in int8; their scales, float32 (n,); the errors, float32 (n, d)."""
    scales = (vectors.abs().amax(dim=1) / _INT8).clamp(min=_SMALLEST_SCALE)
    whole = (vectors / scales[:, None]).round_().nan_to_num(nan=0.0).clamp(-_INT8, _INT8)
    return whole.to(torch.int8), scales, vectors - whole * scales[:, None]

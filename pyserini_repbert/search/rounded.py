"""Copies of an index's vectors in fewer bits: they tell which pairs can reach a threshold.

With q' and x' for a query q and a vector x, rounded, q.x and q'.x' differ by at most |q - q'| |x| +
|q'| |x - x'|. To this come the errors of a score and of the product: g |q| |x| each, as in
`products`. Many queries are multiplied in bfloat16. One query takes as long as reading the
vectors, so it is multiplied in int8, which has half of the bytes; the wider bound leaves a few
times k pairs to score (benchmarks/exact_search.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.search.parts import Blocks
from pyserini_repbert.search.products import BLOCK_ROWS, tensor_of

# Columns of a vector in bfloat16 beside its values.
_WEIGHTS = 4
# A factor that outweighs rounding to bfloat16, and g times a bound.
_UP = 1 + 2**-7
# Norms in this range have products that neither underflow nor overflow.
_SHORTEST = 2.0**-40
_LONGEST = 2.0**60
# It is added to norms: more than they lose where squares and products underflow.
_SLACK = 2.0**-55
_INT8 = 127
_SMALLEST_SCALE = 2.0**-60
# From so many queries on, it is faster if each thread works on separate blocks.
_IN_THREADS = 64
# Rows of such a block.
_ROWS = 4096
# Rows that are rounded together: they stay in the cache of a core.
_ROUNDED_TOGETHER = 512
# Products that are computed at once.
_AT_ONCE = 256 * BLOCK_ROWS


def _sampled(count: int) -> slice:
    """Some of `count` rows, evenly spaced, since a corpus may be ordered by topic."""
    return slice(None, None, max(1, count // min(16384, max(4096, count // 64))))


class RoundedVectors:
    """The vectors of an index's part in bfloat16, in memory, with norms that bound the errors of
    products.

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
    usable : whether all norms are finite and their products cannot overflow
    """

    def __init__(self, index: Blocks, dimension: int) -> None:
        self.vectors = torch.zeros(len(index), self.size(dimension) // 2, dtype=torch.bfloat16)
        longest = torch.zeros(())
        for first, vectors in index.blocks(_ROUNDED_TOGETHER):
            exact = tensor_of(vectors).float()
            rows = self.vectors[first : first + len(exact)]
            rounded, weights = rows.tensor_split([dimension], dim=1)
            rounded[:] = exact
            norms = _norms(exact - rounded, exact)
            weights[:, :2] = norms
            weights[:, 2:_WEIGHTS] = 1
            # A norm that is NaN stays NaN.
            longest = torch.maximum(longest, norms.max())
        self.usable = bool(longest <= _LONGEST)

    def __len__(self) -> int:
        return len(self.vectors)

    @staticmethod
    def size(dimension: int) -> int:
        """Bytes of a rounded vector with its weights."""
        return -(-(dimension + _WEIGHTS) // 16) * 32


Copy = TypeVar('Copy', bound='RoundedVectors | ByteVectors')


@dataclass(frozen=True)
class RoundedBlock(Generic[Copy]):
    """A block of an index's rows: the rounded copy that has them, and which they are there."""

    copy: Copy
    rows: slice


class RoundedParts(Generic[Copy]):
    """The rounded copies of an index's parts, in the order of their rows.

    Parameters
    ----------
    copies : of the parts, at least one

    Attributes
    ----------
    usable : whether all copies are
    sampled : the rows of each copy that are its part of a sample, which are evenly spaced
    sample_rows : the rows of the sample, numbered across all copies, int64 (m,)
    """

    def __init__(self, copies: Sequence[Copy]) -> None:
        self.copies = copies
        self.usable = all(copy.usable for copy in copies)
        self._starts = np.cumsum([0, *map(len, copies)])
        count = int(self._starts[-1])
        self.sampled = _sampled(count)
        rows = np.arange(count)
        bounds = zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        self.sample_rows = np.concatenate([rows[start:end][self.sampled] for start, end in bounds])

    @cached_property
    def sample(self) -> Tensor:
        """The vectors of the sample, in one block of memory."""
        return torch.cat([copy.vectors[self.sampled] for copy in self.copies])

    def block(self, first: int, count: int) -> RoundedBlock[Copy]:
        """A block of the index: its first row, and how many rows it has."""
        number = int(np.searchsorted(self._starts, first, side='right')) - 1
        row = first - int(self._starts[number])
        return RoundedBlock(self.copies[number], slice(row, row + count))


class RoundedProducts:
    """Products of queries, float32 (n, d), with rounded vectors, summed in float32 on the CPU."""

    def __init__(self, rounded: RoundedParts[RoundedVectors], queries: NDArray[np.float32]) -> None:
        exact = torch.from_numpy(queries).double()
        count, dimension = exact.shape
        # With AMX, products with the vectors first are faster; without, those with queries first.
        self._vectors_first = torch.cpu._is_amx_tile_supported()
        width = rounded.copies[0].vectors.shape[1]
        self._queries = torch.zeros(count, width, dtype=torch.bfloat16)
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
            sample = sample[torch.from_numpy(allowed[self._rounded.sample_rows])]
        return (sample @ self._queries.T).T

    def reaching(
        self, first: int, vectors: StoredVectors, thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As in `Float32Products`."""
        limits = thresholds.double()
        # Lowered for the errors of the threshold's sum, and of its two summands.
        limits -= (2 * self._g + 2.0**-15) * limits.abs()
        # Other threads have other thresholds.
        queries = self._queries.clone()
        weights = queries[:, self._dimension :]
        weights[:, :2] = self._weights
        weights[:, 2] = -limits
        weights[:, 3] = -limits - weights[:, 2]
        block = self._rounded.block(first, len(vectors))
        rounded = block.copy.vectors[block.rows]
        if self._vectors_first:
            signs = (rounded @ queries.T).view(torch.int16).numpy()
            rows, owners = np.divmod(np.flatnonzero(signs >= 0), self._count)
        else:
            signs = (queries @ rounded.T).view(torch.int16).numpy()
            owners, rows = np.divmod(np.flatnonzero(signs >= 0), len(vectors))
        return rows, owners


class ByteVectors:
    """The vectors of an index's part in int8.

    A vector x' is a scale, float32, times integers from -127 to 127.

    Parameters
    ----------
    index : the vectors
    dimension : length of a vector

    Attributes
    ----------
    vectors, scales : int8 (n, d) and float32 (n,)
    norms : |x - x'| and |x|, rounded up: float32 (n, 2)
    usable : as in `RoundedVectors`
    """

    def __init__(self, index: Blocks, dimension: int) -> None:
        self.vectors = torch.empty(len(index), dimension, dtype=torch.int8)
        self.scales = torch.empty(len(index))
        self.norms = torch.empty(len(index), 2)
        for first, vectors in index.blocks(_ROUNDED_TOGETHER):
            rows = slice(first, first + len(vectors))
            exact = tensor_of(vectors).float()
            self.vectors[rows], self.scales[rows], errors = _in_bytes(exact)
            self.norms[rows] = _norms(errors, exact)
        # PyTorch 2.13 multiplies single columns of int8 wrongly.
        self.usable = dimension > 1 and bool(self.norms.max() <= _LONGEST)

    def __len__(self) -> int:
        return len(self.scales)

    @staticmethod
    def size(dimension: int) -> int:
        """Bytes of a vector, its scale and its norms."""
        return dimension + 12


class ByteProducts:
    """Products of one query, float32 (1, d), with vectors in int8.

    They are sums of integers, without an error, times the scales. The scaling, and the sum
    with the bound, round four times, which is less than g.
    """

    block_rows = _AT_ONCE

    def __init__(self, rounded: RoundedParts[ByteVectors], queries: NDArray[np.float32]) -> None:
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
        products = torch.cat(
            [self._products(copy, self._rounded.sampled) for copy in self._rounded.copies]
        )
        if allowed is not None:
            products = products[torch.from_numpy(allowed[self._rounded.sample_rows])]
        return products[None]

    def reaching(
        self, first: int, vectors: StoredVectors, thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As in `Float32Products`."""
        block = self._rounded.block(first, len(vectors))
        errors = block.copy.norms[block.rows] @ self._weights
        highest = self._products(block.copy, block.rows).add_(errors)
        reach = np.flatnonzero((highest >= thresholds).numpy())
        return reach, np.zeros_like(reach)

    def _products(self, copy: ByteVectors, rows: slice) -> Tensor:
        whole = torch._int_mm(self._query, copy.vectors[rows].T)[0]
        return whole.float().mul_(copy.scales[rows] * self._scale)


@cache
def multiplies_bytes_exactly() -> bool:
    """Whether PyTorch's products of int8 are right for the greatest numbers, on this processor and
    with the kernels that `ONEDNN_MAX_CPU_ISA` leaves: without VNNI, sums saturate.
    """
    query = torch.full((1, 64), _INT8, dtype=torch.int8)
    vectors = torch.full((64, 64), _INT8, dtype=torch.int8)
    vectors[:, ::2] = -_INT8
    products = torch._int_mm(query, vectors)
    return bool((products == query.long() @ vectors.long()).all())


def _in_bytes(vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Vectors, float32 (n, d), in int8; their scales, float32 (n,); the errors, float32 (n, d)."""
    scales = (vectors.abs().amax(dim=1) / _INT8).clamp(min=_SMALLEST_SCALE)
    # A quotient is at most 127 and a few roundings. If one is not a number, the norms show it.
    whole = (vectors / scales[:, None]).round_()
    errors = torch.addcmul(vectors, whole, scales[:, None], value=-1)
    return whole.to(torch.int8), scales, errors


def _norms(errors: Tensor, vectors: Tensor) -> Tensor:
    """The norms of errors and of vectors, rounded up: float32 (n, 2)."""
    norms = [torch.linalg.vector_norm(rows, dim=1) for rows in (errors, vectors)]
    return torch.stack(norms, dim=1) * _UP + _SLACK

"""Inner products of queries with an index's vectors in PyTorch: which pairs can reach a threshold.

Matrix products are many times faster than scores (`scores`) and round otherwise, so they only tell
which pairs to score. A bound of the difference makes sure that no pair is missed: a sum of d
products in float32, in any order, errs by at most g = d 2^-24 times the sum of all |q_i x_i|, thus
by g |q| |x|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.quantized import GREATEST, Int8Vectors, StoredVectors
from pyserini_repbert.models.linear import linear
from pyserini_repbert.search.parts import Blocks, IndexPart
from pyserini_repbert.search.scores import OVERFLOWS, NotFiniteError, product_errors

BLOCK_ROWS = 16384
# Thresholds are estimated from so many rows.
SAMPLE_ROWS = 2048
# Vectors in int8 that stay in the CPU's cache once they are float32.
_INT8_ROWS = 1024


@dataclass(frozen=True)
class PartRow:
    """A row of an index: the part that has it, and its number there."""

    part: IndexPart
    row: int


class IndexParts:
    """The parts of an index, in the order of their rows; no block of the index has rows of two."""

    def __init__(self, parts: Sequence[IndexPart]) -> None:
        self.parts = parts
        self._starts = np.cumsum([0, *(len(part.vectors) for part in parts)])

    def at(self, row: int) -> PartRow:
        """Which part has a row of the index, and the row's number there."""
        number = int(np.searchsorted(self._starts, row, side='right')) - 1
        return PartRow(self.parts[number], row - int(self._starts[number]))


def tensor_of(vectors: StoredVectors) -> Tensor:
    """Vectors (n, d) as PyTorch multiplies them: float32 or float16; those in int8 as float32."""
    if isinstance(vectors, Int8Vectors):
        numbers = torch.from_numpy(vectors.numbers).float()
        return numbers.mul_(torch.from_numpy(vectors.scales)[:, None])
    return torch.from_numpy(vectors)


class Float32Products:
    """Products of queries with an index's vectors in float32, on any device.

    Parameters
    ----------
    index : the vectors
    queries : float32 (n, d)
    device : where they are multiplied
    parts : of the index; their greatest values are completed here
    """

    block_rows = BLOCK_ROWS

    def __init__(
        self,
        index: Blocks,
        queries: NDArray[np.float32],
        device: torch.device,
        parts: IndexParts,
    ) -> None:
        self._index = index
        self._parts = parts
        self._queries = torch.from_numpy(queries).to(device)
        self._sums = self._queries.abs().sum(dim=1)
        # The block that `lowest` has multiplied is not multiplied again.
        self._last_first = -1
        self._last_products = self._sums

    def sample(self, allowed: NDArray[np.bool_] | None = None) -> Tensor:
        """Products with about `SAMPLE_ROWS` rows, float32 (n queries, m).

        They are evenly spaced, since a corpus may be ordered by topic; those that are not allowed,
        bool (rows,), are left out.
        """
        step = max(1, len(self._index) // SAMPLE_ROWS)
        blocks = self._index.blocks(self.block_rows)
        sampled = np.concatenate(
            [np.asarray(vectors[-first % step :: step]) for first, vectors in blocks]
        )
        if allowed is not None:
            sampled = sampled[allowed[::step]]
        return self._products(sampled)

    def lowest(self, k: int, allowed: NDArray[np.bool_] | None = None) -> Tensor:
        """Scores that k rows of the first block reach, float32 (n queries,).

        They are -inf for a block of at most k rows, or fewer that are allowed, bool (rows,).
        """
        first, vectors = next(self._index.blocks(self.block_rows))
        if k >= len(vectors):
            return torch.full((len(self._queries),), -math.inf)
        products = self._products(vectors)
        self._last_first = first
        self._last_products = products
        if allowed is not None:
            # Faster than choosing columns.
            is_out = torch.from_numpy(~allowed[: len(vectors)]).to(products.device)
            products = products.masked_fill(is_out, -math.inf)
        kth = torch.topk(products, k, dim=1, sorted=False).values.amin(dim=1)
        return (kth - self._errors(first, vectors)).nan_to_num(nan=-math.inf).cpu()

    def reaching(
        self, first: int, vectors: StoredVectors, thresholds: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs whose scores reach the query's threshold, and some others.

        Parameters
        ----------
        first : the first row of a block
        vectors : the block's, (n, d)
        thresholds : of the queries, float32 (n queries,)

        Returns the pairs' rows in the block and their queries' numbers, int64 (m,) each.
        """
        errors = self._errors(first, vectors)
        if first == self._last_first:
            products = self._last_products
        else:
            products = self._products(vectors)
        mask = products >= (thresholds.to(errors.device) - errors)[:, None]
        if errors.isinf().any():
            mask[errors.isinf()] = True
        if mask.device.type == 'cpu':
            pairs = np.flatnonzero(mask.T.numpy())
        else:
            pairs = mask.T.reshape(-1).nonzero().squeeze(1).cpu().numpy()
        rows, owners = np.divmod(pairs, len(self._queries))
        return rows, owners

    def _products(self, vectors: StoredVectors) -> Tensor:
        """float32 (n queries, n rows); in memory rows come first, which is faster with BLAS."""
        device = self._queries.device
        if not isinstance(vectors, Int8Vectors):
            return linear(tensor_of(vectors).to(device).float(), self._queries).T
        products = torch.empty(len(vectors), len(self._queries), device=device)
        for first in range(0, len(vectors), _INT8_ROWS):
            part = vectors[first : first + _INT8_ROWS]
            numbers = torch.from_numpy(part.numbers).to(device).float()
            scales = torch.from_numpy(part.scales).to(device)
            products[first : first + len(part)] = linear(numbers, self._queries) * scales[:, None]
        return products.T

    def _errors(self, first: int, vectors: StoredVectors) -> Tensor:
        """How far a block's products may be from scores, float32 (n queries,).

        The bound is inf where sums may overflow.
        """
        start = self._parts.at(first)
        known = start.part.largest
        if start.row not in known:
            lowest, highest = tensor_of(vectors).aminmax()
            greatest = max(-float(lowest), float(highest))
            # Of one that is not a number, `aminmax` gives that.
            if not math.isfinite(greatest):
                raise NotFiniteError
            known[start.row] = greatest
        largest = known[start.row]
        dimension = vectors.shape[1]
        errors = product_errors(self._sums, largest, dimension)
        are_finite = self._sums * largest < OVERFLOWS
        if isinstance(vectors, Int8Vectors):
            # Whole numbers are added up before they are scaled.
            are_finite &= self._sums * GREATEST < OVERFLOWS
        return torch.where(are_finite, errors, math.inf)

"""Exact search without PyTorch, if it is not imported and vectors are few.

Importing PyTorch takes longer than comparing a question with a hundred thousand vectors in NumPy.
Hits and scores are the same: products of matrices tell which rows can be among the best, and these
are scored as everywhere (`scores.pair_scores`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.text_network import needs_pytorch
from pyserini_repbert.search.parts import Blocks, IndexPart
from pyserini_repbert.search.scores import (
    OVERFLOWS,
    NotFiniteError,
    TopRows,
    pair_scores,
    product_errors,
    top_rows,
)

if TYPE_CHECKING:
    from pyserini_repbert.search.exact import ExactIndex

# Numbers of an index that NumPy multiplies in less time than an import of PyTorch takes.
_MOST_NUMBERS = 2**26
_BLOCK_ROWS = 16384
_FEW_QUERIES = 4


class QuickIndex:
    """Searches an index's vectors by exact inner products, as `ExactIndex` does (RepBERT eq. 3).

    Takes the parameters of `ExactIndex`.
    """

    def __init__(
        self,
        index: Blocks,
        device_name: str = 'cpu',
        parts: Sequence[IndexPart] | None = None,
    ) -> None:
        self._index = index
        self._device_name = device_name
        self._parts = parts

    @cached_property
    def in_pytorch(self) -> ExactIndex:
        """The same search in PyTorch."""
        from pyserini_repbert.search.exact import ExactIndex

        return ExactIndex(self._index, self._device_name, self._parts)

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[TopRows]:
        """The k best rows of each query, as in `ExactIndex.search`, with its errors."""
        if not self._is_quick(queries):
            return self.in_pytorch.search(queries, k, allowed)
        wanted = np.ascontiguousarray(queries, np.float32)
        products = self._products(wanted)
        if (products.greatest >= OVERFLOWS).any():
            return self.in_pytorch.search(queries, k, allowed)
        if allowed is not None:
            products.values[:, ~allowed] = -np.inf
        tops = []
        for number in range(len(wanted)):
            rows = products.rows_that_may_be_best(number, k)
            tops.append(self._score(wanted[[number]], rows, k))
        return tops

    def _is_quick(self, queries: NDArray[np.float32]) -> bool:
        """Whether NumPy searches for queries: few, in few vectors, without PyTorch."""
        is_small = len(self._index) * queries.shape[1] <= _MOST_NUMBERS
        is_few = len(queries) <= _FEW_QUERIES
        return is_small and is_few and self._device_name == 'cpu' and not needs_pytorch(0)

    def _products(self, queries: NDArray[np.float32]) -> _Products:
        """The products of queries with all rows. Raises NotFiniteError for a row that is not."""
        values = np.empty((len(queries), len(self._index)), np.float32)
        largest = 0.0
        for first, stored in self._index.blocks(_BLOCK_ROWS):
            vectors = np.asarray(stored, np.float32)
            values[:, first : first + len(vectors)] = queries @ vectors.T
            of_block = max(float(vectors.max(initial=0.0)), -float(vectors.min(initial=0.0)))
            if not math.isfinite(of_block):
                raise NotFiniteError
            largest = max(largest, of_block)
        sums = np.abs(queries).sum(axis=1, dtype=np.float64)
        errors = product_errors(sums, largest, queries.shape[1])
        return _Products(values, errors, sums * largest)

    def _score(self, query: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> TopRows:
        """The k best of some rows, and all that tie with the last; ties by row.

        `query` is float32 (1, d), `rows` ascend.
        """
        scores = np.empty(len(rows), np.float32)
        for first, stored in self._index.blocks(_BLOCK_ROWS):
            start, end = np.searchsorted(rows, [first, first + len(stored)]).tolist()
            inside = rows[start:end] - first
            scores[start:end] = pair_scores(query, stored, inside, np.zeros_like(inside))
        return top_rows(scores, rows, k)


@dataclass(frozen=True)
class _Products:
    """Products of queries and rows, and how far they may be from scores.

    Attributes
    ----------
    values : float32 (n queries, n rows); -inf for rows that do not count
    errors : how far a query's products may be from its scores, float64 (n queries,)
    greatest : no product of a query is greater, float64 (n queries,)
    """

    values: NDArray[np.float32]
    errors: NDArray[np.float64]
    greatest: NDArray[np.float64]

    def rows_that_may_be_best(self, number: int, k: int) -> NDArray[np.int64]:
        """Rows that include one query's k best, and all that tie with the last.

        The least product of the k best may be too great by the error, and another row's product too
        small.

        Parameters
        ----------
        number : of the query
        k : how many
        """
        values = self.values[number]
        counted = np.flatnonzero(values != -np.inf)
        if len(counted) <= k:
            return counted
        kth = np.partition(values[counted], len(counted) - k)[len(counted) - k]
        return np.flatnonzero(values >= kth - 2 * self.errors[number])

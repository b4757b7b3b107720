"""What smaller vectors lose: the share of a search's best passages that stays.

Passages are the queries, since an index has no others. Each is searched among all passages of its
shard but itself: once by the whole vectors of the model in float32, and once by the vectors as the
index stores them, with a query vector in float32 as a search has it. Both searches are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.index.records import Overlap

QUERIES = 100  # of a shard
_DEPTHS = (10, 100)
# Vectors that are multiplied together.
_ROWS = 4096

Shorten = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def measure_overlap(whole: NDArray[np.float32], stored: StoredVectors, shorten: Shorten) -> Overlap:
    """Compare stored vectors with those that the model gave; the same vectors give the same record.

    Parameters
    ----------
    whole : the model's vectors, float32 (n, D)
    stored : the vectors of the same passages in an index, (n, d)
    shorten : makes a query's vector, float32 (m, D), as long as the index's
    """
    n_queries = min(QUERIES, len(whole))
    rows = np.arange(n_queries) * len(whole) // n_queries
    queries = np.asarray(whole[rows])
    expected = _nearest(queries, whole, rows)
    nearest = _nearest(shorten(queries), stored, rows)
    shares = [_common_share(expected[:, :depth], nearest[:, :depth]) for depth in _DEPTHS]
    return Overlap(n_queries, *shares)


def _nearest(
    queries: NDArray[np.float32], vectors: StoredVectors, left_out: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The best rows of each query, the best first, ties by row: int64 (n queries, at most 100).

    Parameters
    ----------
    queries : float32 (n queries, d)
    vectors : all rows, (n, d)
    left_out : a row that each query does not find, int64 (n queries,)
    """
    exact = queries.astype(np.float64)
    scores = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for first in range(0, len(vectors), _ROWS):
        block = np.asarray(vectors[first : first + _ROWS]).astype(np.float64)
        # Sums in float64 differ between machines, but hardly ever once they are rounded.
        products = (exact @ block.T).astype(np.float32)
        numbers = np.broadcast_to(np.arange(first, first + len(block)), products.shape)
        products[numbers == left_out[:, None]] = -np.inf
        scores = np.concatenate([scores, products], axis=1)
        rows = np.concatenate([rows, numbers], axis=1)
        best = np.argsort(-scores, axis=1, kind='stable')[:, : max(_DEPTHS)]
        scores = np.take_along_axis(scores, best, axis=1)
        rows = np.take_along_axis(rows, best, axis=1)
    # In a small shard, the rows that are left out come last.
    return rows[:, : len(vectors) - 1]


def _common_share(expected: NDArray[np.int64], nearest: NDArray[np.int64]) -> float:
    """The mean share of expected rows that are among the nearest; 1 if there are none."""
    if not expected.shape[1]:
        return 1.0
    shares = [
        len(np.intersect1d(one, other)) / len(one)
        for one, other in zip(expected, nearest, strict=True)
    ]
    return float(np.mean(shares))

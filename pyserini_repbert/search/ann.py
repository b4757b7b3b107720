"""Approximate search: candidates from the bundle's approximate index, scored exactly with the bundle's own vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.index.ann import AnnIndex
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.search import products
from pyserini_repbert.search.exact import TopRows, top_rows

MANY = 8  # from so many queries together on, exact search is faster (figures: docs/guides/own-corpus.md)
_QUERY_GROUP = 256  # queries whose candidates are in memory together


def search(
    bundle: DenseBundle,
    ann: AnnIndex,
    queries: NDArray[np.float32],
    k: int,
    on_progress: Callable[[int], object] | None = None,
) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last of them.

    Parameters
    ----------
    queries : float32 (n, d)
    on_progress : called with the number of queries done since the last call
    """
    tops: list[TopRows] = []
    for start in range(0, len(queries), _QUERY_GROUP):
        group = queries[start : start + _QUERY_GROUP]
        tops += best_of(bundle, group, ann.rows(group, min(k, len(bundle))), k)
        if on_progress is not None:
            on_progress(len(group))
    return tops


def best_of(bundle: DenseBundle, queries: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last of them.

    Parameters
    ----------
    queries : float32 (n, d)
    rows : the candidates, int64 (n, m), padded with -1
    """
    rows = np.sort(rows, axis=1)  # so that neighbouring rows are read together
    pairs = zip(scores(bundle, queries, rows), rows, strict=True)
    return [top_rows(values[numbers >= 0], numbers[numbers >= 0], k) for values, numbers in pairs]


def scores(bundle: DenseBundle, queries: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Inner products, float32 (n, m), of each query, float32 (n, d), with its rows, int64 (n, m); -inf for row -1."""
    result = np.full(rows.shape, -np.inf, np.float32)
    start = 0
    for shard in bundle.shards:
        end = start + len(shard.docids)
        here = np.nonzero((rows >= start) & (rows < end))
        result[here] = products.scores(queries, shard.vectors, rows[here] - start, here[0])
        start = end
    return result

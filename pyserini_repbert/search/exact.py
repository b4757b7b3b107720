"""Exact maximum inner-product search over blocks of vectors: a matrix product per block, a filter,
one final sort.

Matrix products tell which pairs can reach the query's threshold; these are scored, and kept if they
do. The threshold is at first one that k rows of the first block reach or, for many queries, an
estimate from a sample of the whole index; whenever too many scores are kept, it rises to the k-th
best so far. A query whose estimate proves too high is searched again without it. Memory: blocks,
and a few times k scores a query, whatever the size of the index; and, where the CPU multiplies
bfloat16 natively, a rounded copy of the vectors if there is room. The result is the same without
it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.models.precision import has_native_bfloat16
from pyserini_repbert.search.products import SAMPLE_ROWS, Blocks, Float32Products, scores
from pyserini_repbert.search.rounded import (
    ByteProducts,
    ByteVectors,
    RoundedProducts,
    RoundedVectors,
)

QUERY_GROUP = 1024  # queries multiplied with a block together
_SAMPLED_FROM = 16  # queries at least, for the sample to be worth its cost
# standard deviations of the sample's count by which the estimate is lowered, to be rarely too high
_DEVIATIONS = 5
_BUFFER = 4  # times k scores a query are kept before the thresholds rise
_ROUNDED_SHARE = 1 / 4  # of the available memory, which rounded vectors may take
_ROUNDED_FROM = (
    256  # queries that are worth rounding the vectors in the first search; later ones always are
)
_ROUNDED_ROWS = 20_000  # at least, for rounded vectors to be faster
Products = Float32Products | RoundedProducts | ByteProducts


class Search(Protocol):
    """A search of a whole index by exact inner products, on any device or machine."""

    def __call__(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k rows of the greatest scores, and all that tie with the last, for each query,
        float32 (n, d).
        """


class TopRows(NamedTuple):
    """One query's best rows: scores, float32 (m,), that never increase, and rows, int64 (m,).

    All rows that tie with the last of the k best are included, so m can exceed k.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]


class ExactIndex:
    """Search of an index's vectors by exact inner products (RepBERT eq. 3), on the CPU or one
    device.

    On CUDA, `GpuIndex` is faster. From the second search on, or the first of many queries, a CPU
    with native bfloat16 multiplies vectors rounded to bfloat16, or to int8 for a query alone: each
    takes at most a quarter of the available memory, 2 bytes and 1 byte a dimension. Scores are
    computed from the vectors themselves: hits and scores are the same.
    """

    def __init__(self, index: Blocks, device: str | torch.device = 'cpu') -> None:
        self._index = index
        self._device = torch.device(device)
        self._largest: dict[int, float] = {}
        self._copies: dict[type, RoundedVectors | ByteVectors] = {}
        self._searches = 0
        self._lock = threading.Lock()

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """`Search`; an index of fewer than k rows gives all."""
        tops: list[TopRows] = []
        for start in range(0, len(queries), QUERY_GROUP):
            group = np.ascontiguousarray(queries[start : start + QUERY_GROUP], np.float32)
            tops += self._search_group(group, min(k, len(self._index)))
        return tops

    def _search_group(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        if k == 0:
            return [TopRows(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
        exact = Float32Products(self._index, queries, self._device, self._largest)
        products = self._rounded_products(queries, k)
        if products is None:
            if len(queries) < _SAMPLED_FROM or len(self._index) <= max(2 * SAMPLE_ROWS, 4 * k):
                return self._collected(queries, k, exact, exact.lowest(k))
            products = exact
        tops = self._collected(
            queries, k, products, _guessed(products.sample(), k / len(self._index))
        )
        short = [number for number, top in enumerate(tops) if len(top.scores) < k]
        if short:
            again = Float32Products(self._index, queries[short], self._device, self._largest)
            for number, top in zip(
                short, self._collected(queries[short], k, again, again.lowest(k)), strict=True
            ):
                tops[number] = top
        return tops

    def _collected(
        self, queries: NDArray[np.float32], k: int, products: Products, thresholds: Tensor
    ) -> list[TopRows]:
        """Each query's rows with scores >= its threshold, the k best of them and those that tie
        with the last.
        """
        best = _BestScores(k, thresholds)

        def pairs(block: tuple[int, NDArray[np.floating]]) -> tuple[NDArray[Any], ...]:
            first, vectors = block
            rows, owners = products.reaching(first, vectors, best.thresholds)
            return first + rows, owners, scores(queries, vectors, rows, owners)

        in_threads = isinstance(products, RoundedProducts) and products.is_for_threads
        mapped = _pool(torch.get_num_threads()).map if in_threads else map
        for reaching in mapped(pairs, self._index.blocks(products.block_rows)):
            best.add(*reaching)
        return best.results()

    def _rounded_products(self, queries: NDArray[np.float32], k: int) -> Products | None:
        """Products with rounded vectors; None where products in float32 serve better."""
        count = len(self._index)
        dimension = queries.shape[1]
        if (
            count < max(_ROUNDED_ROWS, 8 * k)
            or self._device.type != 'cpu'
            or not has_native_bfloat16(self._device)
        ):
            return None
        kind = ByteVectors if len(queries) == 1 else RoundedVectors
        with self._lock:
            self._searches += 1
            if kind not in self._copies and (self._searches > 1 or len(queries) >= _ROUNDED_FROM):
                if count * kind.size(dimension) > _ROUNDED_SHARE * _available_memory():
                    return None
                self._copies[kind] = kind(self._index, dimension)
        copy = self._copies.get(kind)
        if copy is None or not copy.usable:
            return None
        rounded = (
            ByteProducts(copy, queries)
            if isinstance(copy, ByteVectors)
            else RoundedProducts(copy, queries)
        )
        return rounded if rounded.usable else None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads, each of which computes alone; they are kept, since new ones are slow at first."""
    started = threading.Barrier(threads)
    pool = ThreadPoolExecutor(threads, 'search', torch.set_num_threads, (1,))
    list(
        pool.map(lambda _: (torch.get_num_threads(), started.wait()), range(threads))
    )  # asked once, it is settled
    torch.set_num_threads(threads)  # theirs has become the default of new threads
    return pool


if hasattr(os, 'register_at_fork'):  # a forked process has none of these threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _available_memory() -> float:
    """Bytes of memory that this process can still take, as Linux says; 0 elsewhere."""
    try:
        lines = dict(line.split(':', 1) for line in Path('/proc/meminfo').read_text().splitlines())
        limit = Path('/sys/fs/cgroup/memory.max')  # of a container
        most = limit.read_text().strip() if limit.is_file() else 'max'
        return min(
            1024 * int(lines['MemAvailable'].split()[0]), math.inf if most == 'max' else int(most)
        )
    except (OSError, KeyError, ValueError):
        return 0


def merged(parts: Sequence[TopRows], starts: Sequence[int], k: int) -> TopRows:
    """One query's k best rows of an index, and all that tie with the last, from those of its parts.

    `starts` are the first rows of the parts, added to their rows.
    """
    scores = np.concatenate([part.scores for part in parts])
    rows = np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=True)])
    return top_rows(scores, rows, k)


def top_rows(scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> TopRows:
    """The k best of some rows, and all that tie with the last; ties in the order given."""
    if len(scores) > k:
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        scores = scores[kept]
        rows = rows[kept]
    order = np.argsort(-scores, kind='stable')
    return TopRows(scores[order], rows[order])


def _guessed(products: Tensor, share: float) -> Tensor:
    """Scores that somewhat more than this share of all rows reach, estimated from a sample's:
    float32 (n queries,).
    """
    expected = share * products.shape[1]
    rank = min(products.shape[1], math.ceil(expected + _DEVIATIONS * math.sqrt(expected)) + 1)
    return torch.topk(products, rank, dim=1, sorted=False).values.amin(dim=1).float().cpu()


class _BestScores:
    """The scores that reach the thresholds of a group of queries, float32 (n queries,),
    collected block by block.
    """

    def __init__(self, k: int, thresholds: Tensor) -> None:
        self._k = k
        self.thresholds = thresholds
        self._parts: list[
            tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
        ] = []  # owners, rows, scores
        self._held = 0
        self._most = _BUFFER * k * len(thresholds)

    def add(
        self, rows: NDArray[np.int64], owners: NDArray[np.int64], scores: NDArray[np.float32]
    ) -> None:
        """Keep those scores, of pairs of a row and a query, that reach the query's threshold."""
        reach = np.flatnonzero(scores >= self.thresholds.numpy()[owners])
        self._parts.append((owners[reach], rows[reach], scores[reach]))
        self._held += len(reach)
        if self._held > self._most:
            tops = self.results()
            self._parts = [
                (np.full(len(top.rows), number), top.rows, top.scores)
                for number, top in enumerate(tops)
            ]
            self._held = sum(len(top.rows) for top in tops)
            for number, top in enumerate(tops):
                if len(top.rows) >= self._k:
                    self.thresholds[number] = float(top.scores[-1])
            self._most = max(self._most, 2 * self._held)  # ties can be many

    def results(self) -> list[TopRows]:
        """Each query's k best rows and all that tie with the last of them, best first, ties by
        row.
        """
        owners, rows, scores = map(np.concatenate, zip(*self._parts, strict=True))
        bits = (scores + np.float32(0)).view(np.int32)  # -0 becomes 0
        descending = np.where(
            bits < 0, bits & 0x7FFFFFFF, -bits
        )  # whole numbers in the order of the scores
        keys = torch.from_numpy((owners << 32) + descending)
        order = torch.sort(keys, stable=True).indices.numpy()  # by radix, in all threads
        rows = rows[order]
        scores = scores[order]
        ends = np.cumsum(np.bincount(owners, minlength=len(self.thresholds))).tolist()
        return [
            _cut(scores[a:b], rows[a:b], self._k) for a, b in zip([0, *ends], ends, strict=False)
        ]


def _cut(scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> TopRows:
    """The first k of sorted rows, and those that tie with the last."""
    end = len(scores) if len(scores) <= k else np.count_nonzero(scores >= scores[k - 1])
    return TopRows(scores[:end], rows[:end])

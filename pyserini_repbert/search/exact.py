"""Exact search by inner product: every query is compared with every vector of an index.

Use it on a CPU for up to some millions of passages: a query takes about as long as reading all
vectors. On CUDA, `gpu_index` is faster.
A score is the inner product of the query's vector with the passage's (RepBERT eq. 3,
https://arxiv.org/abs/2006.15498).

How it works: a matrix product for each block of vectors tells which pairs of a query and a row can
reach the query's threshold. These pairs are scored, and kept if they do reach it. One sort at the
end orders the kept rows.

The threshold is at first one that k rows of the first block reach or, for many queries, an estimate
from a sample of the whole index. Whenever too many scores are kept, it rises to the k-th best so
far. If a query's estimate proves too high, it is searched again without an estimate.

Memory: blocks, and a few times k scores a query, whatever the size of the index. Where the CPU
multiplies bfloat16 natively, a rounded copy of the vectors is kept as well, if there is room.
Estimates do not change the result.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.models.precision import has_native_bfloat16
from pyserini_repbert.search.parts import ArrayVectors, Blocks, IndexPart
from pyserini_repbert.search.products import (
    BLOCK_ROWS,
    SAMPLE_ROWS,
    Float32Products,
    IndexParts,
)
from pyserini_repbert.search.rounded import (
    ByteProducts,
    ByteVectors,
    RoundedParts,
    RoundedProducts,
    RoundedVectors,
    multiplies_bytes_exactly,
)
from pyserini_repbert.search.scores import TopRows, pair_scores

# Queries multiplied with a block together.
QUERY_GROUP = 1024
# From so many queries on, the sample is worth its cost.
_SAMPLED_FROM = 16
# The estimate is lowered by so many standard deviations of the sample's count: it is rarely too
# high.
_DEVIATIONS = 5
# So many times k scores a query are kept before the thresholds rise.
_BUFFER = 4
# The share of the available memory that rounded vectors may take.
_ROUNDED_SHARE = 1 / 4
# After so many queries, the vectors are worth rounding, part by part: a command that asks one
# question may search for it several times.
_ROUNDED_AFTER = 4
# A single search of so many queries is worth it.
_ROUNDED_FROM = 256
# Of a smaller share of all rows, missing rounded copies are made at once.
_ROUNDED_AT_ONCE = 1 / 16
# After some queries, each search rounds this share of the rows.
_ROUNDED_EACH = 1 / 4
# Of fewer allowed rows, this share, the vectors are gathered.
_GATHERED_SHARE = 1 / 16
# From so many rows on, rounded vectors are faster.
_ROUNDED_ROWS = 20_000
Products = Float32Products | RoundedProducts | ByteProducts
_Copy = TypeVar('_Copy', RoundedVectors, ByteVectors)


class ScoredPairs(NamedTuple):
    """Pairs of a row of the index and a query, with their scores.

    `rows` and `owners`, the queries' numbers, are int64 (m,); `scores` float32 (m,).
    """

    rows: NDArray[np.int64]
    owners: NDArray[np.int64]
    scores: NDArray[np.float32]


class ExactIndex:
    """Searches an index's vectors by exact inner products (RepBERT eq. 3).

    After some queries, or in a search of many, a CPU with native bfloat16 multiplies vectors
    rounded to bfloat16, or to int8 for a single query. The copies take 2 bytes and 1 byte a
    dimension, and each at most a quarter of the available memory. They only tell which pairs to
    score: hits and scores are the same.

    Parameters
    ----------
    index : the vectors, float32, float16 or int8 (n, d)
    device : where they are multiplied; on CUDA, `GpuIndex` is faster
    parts : of the index, if it shares them with other indexes; what is computed from them is also
        shared
    """

    def __init__(
        self,
        index: Blocks,
        device: str | torch.device = 'cpu',
        parts: Sequence[IndexPart] | None = None,
    ) -> None:
        self._index = index
        self._device = torch.device(device)
        self._parts = IndexParts([IndexPart(index)] if parts is None else parts)
        self._copies: dict[type, RoundedParts[Any]] = {}
        self._lock = threading.Lock()

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[TopRows]:
        """The k best rows of each query, as in `VectorSearch`.

        An index of fewer than k rows gives all.

        Parameters
        ----------
        queries : float32 (n, d)
        k : how many rows
        allowed : the rows that count, bool (rows,); None: all. If they are few, only their vectors
            are read.
        """
        n_allowed = len(self._index)
        if allowed is not None:
            n_allowed = int(np.count_nonzero(allowed))
        if allowed is not None and n_allowed < _GATHERED_SHARE * len(self._index):
            return self._search_gathered(queries, k, allowed)
        tops: list[TopRows] = []
        for start in range(0, len(queries), QUERY_GROUP):
            group = np.ascontiguousarray(queries[start : start + QUERY_GROUP], np.float32)
            tops += self._search_query_group(group, min(k, n_allowed), allowed, n_allowed)
        return tops

    def _search_gathered(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """As in `search`, in a copy of the vectors that are allowed."""
        rows = np.flatnonzero(allowed)
        parts = []
        for first, vectors in self._index.blocks(BLOCK_ROWS):
            parts.append(vectors[allowed[first : first + len(vectors)]])
        tops = ExactIndex(ArrayVectors(np.concatenate(parts)), self._device).search(queries, k)
        return [TopRows(top.scores, rows[top.rows]) for top in tops]

    def _search_query_group(
        self,
        queries: NDArray[np.float32],
        k: int,
        allowed: NDArray[np.bool_] | None,
        n_allowed: int,
    ) -> list[TopRows]:
        """As in `search`, for at most `QUERY_GROUP` queries; k is at most `n_allowed`."""
        if k == 0:
            return [TopRows(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
        products = self._rounded_products(queries, k)
        if products is None:
            if len(queries) < _SAMPLED_FROM or n_allowed <= max(2 * SAMPLE_ROWS, 4 * k):
                return self._search_from_first_block(queries, k, allowed)
            products = Float32Products(self._index, queries, self._device, self._parts)
        thresholds = _estimate_thresholds(products.sample(allowed), k / n_allowed)
        tops = self._collect(queries, k, products, thresholds, allowed)
        # An estimate that fewer than k rows reach was too high.
        overestimated = [number for number, top in enumerate(tops) if len(top.scores) < k]
        if overestimated:
            corrected = self._search_from_first_block(queries[overestimated], k, allowed)
            for number, top in zip(overestimated, corrected, strict=True):
                tops[number] = top
        return tops

    def _search_from_first_block(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None
    ) -> list[TopRows]:
        """As in `search`, with thresholds that k rows of the first block reach."""
        products = Float32Products(self._index, queries, self._device, self._parts)
        return self._collect(queries, k, products, products.lowest(k, allowed), allowed)

    def _collect(
        self,
        queries: NDArray[np.float32],
        k: int,
        products: Products,
        thresholds: Tensor,
        allowed: NDArray[np.bool_] | None,
    ) -> list[TopRows]:
        """The k best of each query's rows that reach its threshold, and those that tie with the
        last.
        """
        best = _BestScores(k, thresholds)

        def score_block(block: tuple[int, StoredVectors]) -> ScoredPairs:
            first, vectors = block
            rows, owners = products.reaching(first, vectors, best.thresholds)
            if allowed is not None:
                is_allowed = allowed[first + rows]
                rows = rows[is_allowed]
                owners = owners[is_allowed]
            scores = pair_scores(queries, vectors, rows, owners)
            return ScoredPairs(first + rows, owners, scores)

        blocks = self._index.blocks(products.block_rows)
        if isinstance(products, RoundedProducts) and products.is_for_threads:
            scored_blocks = _pool(torch.get_num_threads()).map(score_block, blocks)
        else:
            scored_blocks = map(score_block, blocks)
        for pairs in scored_blocks:
            best.add(pairs)
        return best.results()

    def _rounded_products(self, queries: NDArray[np.float32], k: int) -> Products | None:
        """Products with rounded vectors; None if products in float32 serve better."""
        if len(self._index) < max(_ROUNDED_ROWS, 8 * k):
            return None
        if self._device.type != 'cpu' or not has_native_bfloat16(self._device):
            return None
        rounded: Products
        if len(queries) == 1:
            if not multiplies_bytes_exactly():
                return None
            in_bytes = self._rounded_copy(ByteVectors, queries)
            if in_bytes is None:
                return None
            rounded = ByteProducts(in_bytes, queries)
        else:
            in_bfloat16 = self._rounded_copy(RoundedVectors, queries)
            if in_bfloat16 is None:
                return None
            rounded = RoundedProducts(in_bfloat16, queries)
        return rounded if rounded.usable else None

    def _rounded_copy(
        self, kind: type[_Copy], queries: NDArray[np.float32]
    ) -> RoundedParts[_Copy] | None:
        """The rounded copies of the parts, made if it is worth it.

        None if there are none, or if they cannot be used.
        """
        with self._lock:
            if kind not in self._copies:
                missing = [part for part in self._parts.parts if kind not in part.copies]
                due = self._due(missing, len(queries))
                if due and self._has_room(missing, kind, queries.shape[1]):
                    for part in due:
                        part.copies[kind] = kind(part.vectors, queries.shape[1])
                if any(kind not in part.copies for part in missing):
                    for part in missing:
                        part.n_queries += len(queries)
                    return None
                copies = [part.copies[kind] for part in self._parts.parts]
                self._copies[kind] = RoundedParts(copies)
        rounded = self._copies[kind]
        return rounded if rounded.usable else None

    def _due(self, missing: Sequence[IndexPart], n_queries: int) -> Sequence[IndexPart]:
        """The parts, of those without rounded copies, that a search of some queries rounds.

        It rounds all if a search in float32 takes longer, or if it has many queries. Later searches
        round some parts each: no question waits for all of them.
        """
        n_rows = sum(len(part.vectors) for part in missing)
        if n_rows <= _ROUNDED_AT_ONCE * len(self._index) or n_queries >= _ROUNDED_FROM:
            return missing
        due: list[IndexPart] = []
        if min(part.n_queries for part in missing) < _ROUNDED_AFTER:
            return due
        n_due = 0
        for part in missing:
            if n_due < _ROUNDED_EACH * len(self._index):
                due.append(part)
                n_due += len(part.vectors)
        return due

    @staticmethod
    def _has_room(parts: Sequence[IndexPart], kind: type[_Copy], dimension: int) -> bool:
        """Whether the available memory has room for the rounded copies of parts."""
        count = sum(len(part.vectors) for part in parts)
        return count * kind.size(dimension) <= _ROUNDED_SHARE * _available_memory()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that compute separately. They are kept, because new threads are slow at first."""
    started = threading.Barrier(threads)
    pool = ThreadPoolExecutor(threads, 'search', torch.set_num_threads, (1,))

    def settle(_: int) -> None:
        # Asking a thread once for its number of threads settles it.
        torch.get_num_threads()
        started.wait()

    list(pool.map(settle, range(threads)))
    # The pool's setting has become the default of new threads: set it back.
    torch.set_num_threads(threads)
    return pool


# A forked process has none of these threads.
if hasattr(os, 'register_at_fork'):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _available_memory() -> float:
    """Bytes of memory that this process can still take, as Linux says; 0 elsewhere."""
    try:
        lines = Path('/proc/meminfo').read_text().splitlines()
        kilobytes = dict(line.split(':', 1) for line in lines)['MemAvailable'].split()[0]
        available = 1024 * int(kilobytes)
        container = Path('/sys/fs/cgroup/memory.max')
        limit = container.read_text().strip() if container.is_file() else 'max'
        return available if limit == 'max' else min(available, int(limit))
    except (OSError, KeyError, ValueError):
        return 0


def _estimate_thresholds(products: Tensor, share: float) -> Tensor:
    """Scores that somewhat more than this share of all rows reach, float32 (n queries,).

    They are estimated from `products` with a sample of the rows, (n queries, m); they are -inf for
    a sample without rows.
    """
    if not products.shape[1]:
        return torch.full((len(products),), -math.inf)
    expected = share * products.shape[1]
    lowered = expected + _DEVIATIONS * math.sqrt(expected)
    rank = min(products.shape[1], math.ceil(lowered) + 1)
    return torch.topk(products, rank, dim=1, sorted=False).values.amin(dim=1).float().cpu()


class _BestScores:
    """The scores of a group of queries that reach their thresholds, collected block by block.

    `thresholds` are float32 (n queries,); they rise when too many scores are held.
    """

    def __init__(self, k: int, thresholds: Tensor) -> None:
        self._k = k
        self.thresholds = thresholds
        self._parts: list[ScoredPairs] = []
        self._held = 0
        self._most = _BUFFER * k * len(thresholds)

    def add(self, pairs: ScoredPairs) -> None:
        """Keep the pairs whose scores reach the query's threshold."""
        reach = np.flatnonzero(pairs.scores >= self.thresholds.numpy()[pairs.owners])
        kept = ScoredPairs(pairs.rows[reach], pairs.owners[reach], pairs.scores[reach])
        self._parts.append(kept)
        self._held += len(reach)
        if self._held > self._most:
            self._raise_thresholds()

    def _raise_thresholds(self) -> None:
        """Keep only the best rows; their last scores become the thresholds."""
        tops = self.results()
        self._parts = []
        self._held = 0
        for number, top in enumerate(tops):
            count = len(top.rows)
            self._parts.append(ScoredPairs(top.rows, np.full(count, number), top.scores))
            self._held += count
            if count >= self._k:
                self.thresholds[number] = float(top.scores[-1])
        # Ties with the last can be many.
        self._most = max(self._most, 2 * self._held)

    def results(self) -> list[TopRows]:
        """Each query's k best rows and all that tie with the last, best first, ties by row."""
        rows = np.concatenate([part.rows for part in self._parts])
        owners = np.concatenate([part.owners for part in self._parts])
        scores = np.concatenate([part.scores for part in self._parts])
        bits = scores.view(np.int32)
        # Integers that rise as the scores fall; 0 and -0 have the same one.
        descending = np.where(bits < 0, bits & 0x7FFFFFFF, -bits)
        keys = torch.from_numpy((owners << 32) + descending)
        # PyTorch sorts whole numbers by radix, in all threads.
        order = torch.sort(keys, stable=True).indices.numpy()
        rows = rows[order]
        scores = scores[order]
        counts = np.bincount(owners, minlength=len(self.thresholds))
        bounds = [0, *np.cumsum(counts).tolist()]
        return [_best_rows(scores[a:b], rows[a:b], self._k) for a, b in pairwise(bounds)]


def _best_rows(scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> TopRows:
    """The first k of sorted rows, and those that tie with the last."""
    end = len(scores)
    if end > k:
        end = int(np.count_nonzero(scores >= scores[k - 1]))
    return TopRows(scores[:end], rows[:end])

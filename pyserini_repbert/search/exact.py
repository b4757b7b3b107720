"""Exact maximum inner-product search over blocks of vectors: a matrix product per block, a filter, one final sort.

Only scores that reach the query's threshold are kept. The threshold is at first the k-th best score of the first block
or, for many queries, an estimate from a sample of the whole index; whenever too many scores are kept, it rises to the
k-th best so far. A query whose estimate proves too high is searched again without it. A score depends only on its block
and its group of queries, never on other blocks. Memory: one block, and a few times k scores a query, whatever the size
of the index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK_ROWS = 16384
QUERY_GROUP = 1024  # queries multiplied with a block together
_SAMPLE = 2048  # rows from which thresholds are estimated
_SAMPLED_FROM = 16  # queries at least, for the sample to be worth its cost
_DEVIATIONS = 5  # standard deviations of the sample's count by which the estimate is lowered, to be rarely too high
_BUFFER = 4  # times k scores a query are kept before the thresholds rise


class Blocks(Protocol):
    """Vectors that can be read in blocks, any number of times."""

    def __len__(self) -> int:
        """Number of vectors."""

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """(first row, float32 or float16 (n, d)) of at most `size` rows each, in order."""


class Search(Protocol):
    """A search of a whole index by exact inner products, on any device or machine."""

    def __call__(
        self, queries: NDArray[np.float32], k: int, on_progress: Callable[[int], object] | None = None
    ) -> list[TopRows]:
        """The result of `search`: the k best rows of each query, float32 (n, d), and all that tie with the last."""


class TopRows(NamedTuple):
    """One query's best rows: scores, float32 (m,), that never increase, and rows, int64 (m,).

    All rows that tie with the last of the k best are included, so m can exceed k.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]


def search(
    index: Blocks,
    queries: NDArray[np.float32],
    k: int,
    device: str | torch.device = 'cpu',
    block_rows: int | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> list[TopRows]:
    """The k rows with the greatest inner products (RepBERT eq. 3), and all that tie with the last, for each query.

    Vectors are multiplied in float32; float16 ones are converted first. On CUDA, `gpu_index` is faster.

    Parameters
    ----------
    queries : float32 (n, d)
    k : number of rows; a smaller index gives fewer
    block_rows : rows multiplied at a time
    on_progress : called with the number of queries done since the last call
    """
    target = torch.device(device)
    size = block_rows or BLOCK_ROWS
    found: list[TopRows] = []
    for start in range(0, len(queries), QUERY_GROUP):
        group = torch.from_numpy(np.ascontiguousarray(queries[start : start + QUERY_GROUP])).to(target)
        found += _search_group(index, group, min(k, len(index)), size)
        if on_progress is not None:
            on_progress(len(group))
    return found


def merged(parts: Sequence[TopRows], starts: Sequence[int], k: int) -> TopRows:
    """One query's k best rows of an index, and all that tie with the last, from those of its parts.

    Parameters
    ----------
    parts : of each part the k best rows, or all, and those that tie with the last
    starts : the first row of each part, added to its rows
    """
    scores = np.concatenate([part.scores for part in parts])
    rows = np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=True)])
    order = np.argsort(-scores, kind='stable')
    scores, rows = scores[order], rows[order]
    if len(scores) > k:
        count = int(np.searchsorted(-scores, -scores[k - 1], side='right'))
        scores, rows = scores[:count], rows[:count]
    return TopRows(scores, rows)


def _search_group(index: Blocks, queries: Tensor, k: int, size: int) -> list[TopRows]:
    if k == 0:
        return [TopRows(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in range(len(queries))]
    thresholds = None
    if len(queries) >= _SAMPLED_FROM and len(index) > max(2 * _SAMPLE, 4 * k):
        thresholds = _guessed(_products(queries, _sample(index, size)), k / len(index))
    best = _BestScores(len(queries), k, thresholds)
    for first, vectors in index.blocks(size):
        best.add(_products(queries, vectors), first)
    found = best.results()
    short = [number for number, top in enumerate(found) if len(top.scores) < k]
    if short:
        again = _BestScores(len(short), k)
        for first, vectors in index.blocks(size):
            again.add(_products(queries, vectors)[short], first)  # as above: other shapes may round otherwise
        for number, top in zip(short, again.results(), strict=True):
            found[number] = top
    return found


def _products(queries: Tensor, vectors: NDArray[np.floating]) -> Tensor:
    """Inner products, float32 (n queries, n rows); in memory rows come first, which is faster with BLAS."""
    return (torch.from_numpy(vectors).to(queries.device).float() @ queries.T).T


def _sample(index: Blocks, size: int) -> NDArray[np.floating]:
    """About `_SAMPLE` rows, evenly spaced, since a corpus may be ordered by topic."""
    step = len(index) // _SAMPLE
    return np.concatenate([vectors[-first % step :: step] for first, vectors in index.blocks(size)])


def _guessed(scores: Tensor, share: float) -> Tensor:
    """Scores that somewhat more than this share of all rows reach, estimated from a sample's: float32 (n queries,)."""
    expected = share * scores.shape[1]
    rank = min(scores.shape[1], math.ceil(expected + _DEVIATIONS * math.sqrt(expected)) + 1)
    return torch.topk(scores, rank, dim=1, sorted=False).values.amin(dim=1)


class _BestScores:
    """The scores that reach the thresholds of a group of queries, collected block by block."""

    def __init__(self, n_queries: int, k: int, thresholds: Tensor | None = None) -> None:
        self.k, self.n_queries = k, n_queries
        self.thresholds = thresholds
        self.parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []
        self.held = 0

    def add(self, scores: Tensor, first: int) -> None:
        """Add the scores of a block that begins with row `first`, float32 (n_queries, n)."""
        if self.thresholds is None:
            self.thresholds = self._first_thresholds(scores)
        mask = scores >= self.thresholds[:, None]
        if scores.device.type == 'cpu':
            flat = np.flatnonzero(mask.T.numpy())
            values = scores.T.reshape(-1).numpy()[flat]
        else:
            positions = mask.T.reshape(-1).nonzero().squeeze(1)
            values = scores.T.reshape(-1)[positions].cpu().numpy()
            flat = positions.cpu().numpy()
        rows, owners = np.divmod(flat, self.n_queries)
        order = np.argsort(owners.astype(np.uint16), kind='stable')
        self.parts.append((owners[order], rows[order] + first, values[order]))
        self.held += len(flat)
        if self.held > _BUFFER * self.k * self.n_queries:
            self._raise(self.thresholds)

    def _first_thresholds(self, scores: Tensor) -> Tensor:
        """Each query's k-th best score of the first block, float32 (n_queries,); -inf for a block of at most k rows."""
        if self.k >= scores.shape[1]:
            return torch.full((len(scores),), -math.inf, device=scores.device)
        return torch.topk(scores, self.k, dim=1, sorted=False).values.amin(dim=1)

    def _table(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The scores and rows kept, (n_queries, widest), padded with -inf and -1."""
        counts = np.zeros(self.n_queries, np.int64)
        placed = []
        for owners, _, _ in self.parts:  # each in the order of its owners
            own = np.bincount(owners, minlength=self.n_queries)
            placed.append(np.arange(len(owners)) + np.repeat(counts - np.cumsum(own) + own, own))
            counts += own
        widest = max(int(counts.max()), 1)
        score_table = np.full((self.n_queries, widest), -np.inf, np.float32)
        row_table = np.full((self.n_queries, widest), -1, np.int64)
        for (owners, rows, values), places in zip(self.parts, placed, strict=True):
            score_table[owners, places], row_table[owners, places] = values, rows
        return score_table, row_table

    def _raise(self, thresholds: Tensor) -> None:
        """Raise each threshold to the query's k-th best score so far; lower scores are discarded."""
        score_table, row_table = self._table()
        if score_table.shape[1] > self.k:
            kth = torch.topk(torch.from_numpy(score_table), self.k, dim=1, sorted=False).values.min(dim=1).values
            thresholds = torch.maximum(thresholds, kth.to(thresholds.device))
        self.thresholds = thresholds
        keep = (score_table >= thresholds.cpu().numpy()[:, None]) & (row_table >= 0)
        owners, places = np.nonzero(keep)
        self.parts = [(owners, row_table[owners, places], score_table[owners, places])]
        self.held = len(owners)

    def results(self) -> list[TopRows]:
        """Each query's k best rows and all that tie with the last of them, best first."""
        score_table, row_table = self._table()
        width = min(self.k + 1, score_table.shape[1])
        values, places = torch.topk(torch.from_numpy(score_table), width, dim=1)
        best, best_rows = values.numpy(), np.take_along_axis(row_table, places.numpy(), axis=1)
        found = []
        for query in range(self.n_queries):
            scores, rows = best[query], best_rows[query]
            if width > self.k:
                if scores[self.k] == scores[self.k - 1] and rows[self.k] >= 0:
                    everything = np.flatnonzero(score_table[query] >= scores[self.k - 1])
                    everything = everything[np.argsort(-score_table[query, everything], kind='stable')]
                    scores, rows = score_table[query, everything], row_table[query, everything]
                else:
                    scores, rows = scores[: self.k], rows[: self.k]
            if rows[-1] < 0:  # fewer than asked for
                scores, rows = scores[rows >= 0], rows[rows >= 0]
            found.append(TopRows(scores, rows))
        return found

"""Exact search on GPUs: the vectors stay in GPU memory if they fit; one pass serves all queries.

Several GPUs have equal shares of the rows, and each searches its own. It keeps the greatest scores
of each query, some more than were asked for. If all of these equal the k-th, there may be more
ties: the query is searched again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.search.gpu import Gpu
from pyserini_repbert.search.scores import TopRows, merged

# The share of free memory that vectors may take; the rest is for scores.
_RESIDENT = 3 / 4
# Memory of a score in a block: float32, and temporaries.
_SCORE_BYTES = 8
# Memory of a score that is kept: value, row, and the orders that sort them.
_HIT_BYTES = 128
# Scores kept beyond k, in which ties with the k-th show.
_SPARE = 32
# So many times as many are kept where all of them tie.
_MORE = 8
# There is always room for so many scores: asking the device for its free memory takes time.
_FEW_SCORES = 1 << 25
# In a block; PyTorch's kernels count in 32 bits.
_MOST_SCORES = 1 << 30
# Queries multiplied with a block together.
_MOST_QUERIES = 512
# Scores in a tile, for `greatest`.
_LEAST_TILE = 4


class GpuIndex:
    """An index's vectors on one or several GPUs.

    The first search copies them. A GPU's share stays there if it takes at most three quarters of
    the free memory; otherwise every search streams it, once or, for very many queries, several
    times.

    Parameters
    ----------
    index : the bundle
    dimension : length of a vector
    device : 'cuda:N', or 'cuda' for all GPUs that this process sees
    dtype : 'float16' or 'float32': the type in which vectors and queries are multiplied; sums are
        float32
    gpus : used instead of the GPUs that `device` names
    """

    def __init__(
        self,
        index: DenseBundle,
        dimension: int,
        device: torch.device,
        dtype: str = 'float16',
        gpus: Sequence[Gpu] | None = None,
    ) -> None:
        if gpus is None:
            gpus = _gpus_of(device)
        bounds = [len(index) * number // len(gpus) for number in range(len(gpus) + 1)]
        self._precision = torch.float16 if dtype == 'float16' else torch.float32
        self._shares = []
        for gpu, (start, stop) in zip(gpus, pairwise(bounds), strict=True):
            if start < stop:
                share = _Share(gpu, index, start, stop, dimension, self._precision)
                self._shares.append(share)
        self._lock = threading.Lock()

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best rows of each query, as in `VectorSearch`.

        Raises InputError for vectors, of the index or of queries, not finite in the dtype.
        """
        if not self._shares:
            return [TopRows(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
        if np.abs(queries).max(initial=0.0) > torch.finfo(self._precision).max:
            raise InputError(
                'a query vector is not finite in float16: search in float32',
                parameters=('device_dtype',),
            )
        with self._lock:
            if len(self._shares) == 1:
                return self._shares[0].search(queries, k)
            with ThreadPoolExecutor(len(self._shares)) as pool:
                tops = list(pool.map(lambda share: share.search(queries, k), self._shares))
        # Each share's rows are numbered as in the whole index already.
        starts = [0] * len(tops)
        return [merged(parts, starts, k) for parts in zip(*tops, strict=True)]


def _gpus_of(device: torch.device) -> list[Gpu]:
    """The GPU that `device` names, or all that this process sees."""
    if device.index is not None:
        return [Gpu(device)]
    return [Gpu(torch.device('cuda', number)) for number in range(torch.cuda.device_count())]


class _Hits(NamedTuple):
    """The greatest scores of some queries so far, float32 (n, m), and their rows, int64 (n, m)."""

    scores: Tensor
    rows: Tensor


class _Share:
    """The rows of one GPU."""

    def __init__(
        self,
        gpu: Gpu,
        index: DenseBundle,
        start: int,
        stop: int,
        dimension: int,
        dtype: torch.dtype,
    ) -> None:
        self._gpu = gpu
        self._start = start
        self._count = stop - start
        self._dtype = dtype
        self._bytes = self._count * dimension * dtype.itemsize
        # The arguments of `Gpu.streamed`.
        self._vectors = (index, start, stop, dimension, dtype)
        self._resident: Tensor | None = None

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """As `GpuIndex.search`, for these rows."""
        with self._gpu.on_device(), torch.inference_mode():
            if self._resident is None and self._bytes <= _RESIDENT * self._gpu.free_memory():
                self._resident = self._gpu.resident(*self._vectors)
            return self._top(queries, min(k, self._count), k + _SPARE)

    def _top(self, queries: NDArray[np.float32], k: int, keep: int) -> list[TopRows]:
        """The best rows, from the `keep` greatest scores of each query.

        Where all of these tie, from more.
        """
        keep = min(keep, self._count)
        tops: list[TopRows] = []
        at_once = max(1, len(queries))
        block_scores = _FEW_SCORES
        if self._resident is None or at_once * max(self._count, keep * _HIT_BYTES) > _FEW_SCORES:
            free = self._gpu.free_memory()
            # No more queries at once than have room for their hits.
            at_once = max(1, free // 2 // (keep * _HIT_BYTES))
            block_scores = max(1, min(_MOST_SCORES, free // 4 // _SCORE_BYTES))
        for first in range(0, len(queries), at_once):
            group = torch.from_numpy(queries[first : first + at_once])
            on_gpu = group.to(self._gpu.device, self._dtype)
            tops += self._pass(on_gpu, k, keep, block_scores)
        tied = [number for number, top in enumerate(tops) if len(top.rows) == keep < self._count]
        if tied:
            complete = self._top(queries[tied], k, _MORE * keep)
            for number, top in zip(tied, complete, strict=True):
                tops[number] = top
        return tops

    def _pass(self, queries: Tensor, k: int, keep: int, block_scores: int) -> list[TopRows]:
        """One pass over the rows for all queries, multiplied in blocks of `block_scores` scores.

        Returns, of the `keep` greatest scores of each query, those that reach the k-th.
        """
        size = max(1, min(_MOST_QUERIES, block_scores // min(4 * keep, self._count), len(queries)))
        groups = torch.split(queries, size)
        best: list[_Hits] = []
        for first, block in self._blocks(max(1, block_scores // size)):
            for number, group in enumerate(groups):
                scores, columns = greatest(self._gpu.products(group, block), keep)
                rows = columns + first
                if number == len(best):
                    best.append(_Hits(scores, rows))
                    continue
                scores = torch.cat([best[number].scores, scores], 1)
                rows = torch.cat([best[number].rows, rows], 1)
                scores, order = scores.topk(min(keep, scores.shape[1]), dim=1, sorted=False)
                best[number] = _Hits(scores, rows.gather(1, order))
        # Equal scores are ordered by row.
        rows, order = torch.cat([hits.rows for hits in best]).sort(dim=1)
        scores = torch.cat([hits.scores for hits in best]).gather(1, order)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        top_scores = scores.cpu().numpy()
        top_rows = rows.gather(1, order).cpu().numpy()
        ends = (top_scores >= top_scores[:, k - 1 : k]).sum(axis=1)
        return [TopRows(top_scores[n, :end], top_rows[n, :end]) for n, end in enumerate(ends)]

    def _blocks(self, rows: int) -> Iterator[tuple[int, Tensor]]:
        """(first row, vectors) of at most `rows` rows each, in order."""
        if self._resident is not None:
            for first in range(0, len(self._resident), rows):
                yield self._start + first, self._resident[first : first + rows]
            return
        for first, block in self._gpu.streamed(*self._vectors):
            for offset in range(0, len(block), rows):
                yield first + offset, block[offset : offset + rows]


def greatest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` greatest scores of each query, and their columns, in no order.

    All are given if there are fewer. `topk` reads scores several times. Of very many scores, it
    gets only those in the `count` tiles with the greatest maxima, which hold the greatest scores
    and are found in one reading. Scores are float32 (n, m).
    """
    width = scores.shape[1]
    count = min(count, width)
    # With this size there are about as many tiles as scores in the best tiles.
    tile = 1 << (width // count).bit_length() // 2
    if scores.numel() <= _FEW_SCORES or tile < _LEAST_TILE:
        values, columns = scores.topk(count, dim=1, sorted=False)
        return values, columns
    end = width // tile * tile
    tiles = scores[:, :end].reshape(len(scores), -1, tile)
    best = tiles.amax(dim=2).topk(count, dim=1, sorted=False).indices[:, :, None]
    columns = torch.arange(tile, device=scores.device) + best * tile
    in_tiles = tiles.gather(1, best.expand_as(columns)).flatten(1)
    rest = torch.arange(end, width, device=scores.device).expand(len(scores), -1)
    # The last columns, too few for a tile, are always looked at.
    chosen = torch.cat([in_tiles, scores[:, end:]], dim=1)
    chosen_columns = torch.cat([columns.flatten(1), rest], dim=1)
    values, order = chosen.topk(count, dim=1, sorted=False)
    return values, chosen_columns.gather(1, order)

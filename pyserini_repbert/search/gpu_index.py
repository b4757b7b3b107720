"""Exact search on GPUs: the vectors stay in GPU memory where they fit, and one pass over them
serves all queries.

Several GPUs have equal shares of the rows, and each searches its own. It keeps the greatest scores
of each query, some more than were asked for. If all of these equal the k-th, there may be more
ties: the query is searched again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.search.exact import TopRows, merged
from pyserini_repbert.search.gpu import Gpu

_RESIDENT = 3 / 4  # the share of free memory that vectors may take; the rest is for scores
_SCORE_BYTES = 8  # memory of a score in a block: float32, and temporaries
_HIT_BYTES = 128  # memory of a score that is kept: value, row, and the orders that sort them
_SPARE = 32  # scores kept beyond k, in which ties with the k-th show
_MORE = 8  # times as many are kept where all of them tie
_FEW_SCORES = (
    1 << 25
)  # there is always room for these: asking the device for its free memory takes time
_MOST_SCORES = 1 << 30  # in a block: PyTorch's kernels count in 32 bits
_MOST_QUERIES = 512  # multiplied with a block together
_LEAST_TILE = 4  # scores in a tile, for `greatest`


class GpuIndex:
    """An index's vectors on one or several GPUs.

    The first search copies them. A GPU's share stays there if it takes at most three quarters of
    the free memory; otherwise every search streams it, once or, for very many queries, several
    times.

    Parameters
    ----------
    dimension : length of a vector
    device : 'cuda:N', or 'cuda' for all GPUs that this process sees
    dtype : 'float16' or 'float32': the type in which vectors and queries are multiplied; sums are
        float32
    gpus : used instead of those of `device`
    """

    def __init__(
        self,
        index: DenseBundle,
        dimension: int,
        device: torch.device,
        dtype: str = 'float16',
        gpus: Sequence[Gpu] | None = None,
    ) -> None:
        numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
        gpus = [Gpu(torch.device('cuda', number)) for number in numbers] if gpus is None else gpus
        bounds = [len(index) * number // len(gpus) for number in range(len(gpus) + 1)]
        self._precision = precision = torch.float16 if dtype == 'float16' else torch.float32
        self._shares = [
            _Share(gpu, index, start, stop, dimension, precision)
            for gpu, start, stop in zip(gpus, bounds, bounds[1:], strict=False)
            if start < stop
        ]
        self._lock = threading.Lock()

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """`exact.Search`.

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
        starts = [0] * len(tops)  # rows are those of the whole index already
        return [merged(parts, starts, k) for parts in zip(*tops, strict=True)]


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
        self._vectors = index, start, stop, dimension, dtype  # as `Gpu.streamed` takes them
        self._resident: Tensor | None = None

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """As `GpuIndex.search`, for these rows."""
        with self._gpu.on_device(), torch.inference_mode():
            if self._resident is None and self._bytes <= _RESIDENT * self._gpu.free_memory():
                self._resident = self._gpu.resident(*self._vectors)
            return self._top(queries, min(k, self._count), k + _SPARE)

    def _top(self, queries: NDArray[np.float32], k: int, keep: int) -> list[TopRows]:
        """The best rows, from the `keep` greatest scores of each query, and of more where all of
        these tie.
        """
        keep = min(keep, self._count)
        tops = list[TopRows]()
        at_once = max(1, len(queries))
        block_scores = _FEW_SCORES
        if self._resident is None or at_once * max(self._count, keep * _HIT_BYTES) > _FEW_SCORES:
            free = self._gpu.free_memory()
            at_once = max(
                1, free // 2 // (keep * _HIT_BYTES)
            )  # more queries only where their hits have room
            block_scores = max(1, min(_MOST_SCORES, free // 4 // _SCORE_BYTES))
        for first in range(0, len(queries), at_once):
            group = torch.from_numpy(queries[first : first + at_once]).to(
                self._gpu.device, self._dtype
            )
            tops += self._pass(group, k, keep, block_scores)
        tied = [number for number, top in enumerate(tops) if len(top.rows) == keep < self._count]
        if tied:
            for number, top in zip(tied, self._top(queries[tied], k, _MORE * keep), strict=True):
                tops[number] = top
        return tops

    def _pass(self, queries: Tensor, k: int, keep: int, block_scores: int) -> list[TopRows]:
        """One pass over the rows for all queries: of the `keep` greatest scores, those that
        reach the k-th.
        """
        size = max(1, min(_MOST_QUERIES, block_scores // min(4 * keep, self._count), len(queries)))
        groups = torch.split(queries, size)
        best: list[tuple[Tensor, Tensor]] = []
        for first, block in self._blocks(max(1, block_scores // size)):
            for number, group in enumerate(groups):
                scores, places = greatest(self._gpu.products(group, block), keep)
                if number == len(best):
                    best.append((scores, places + first))
                    continue
                scores = torch.cat([best[number][0], scores], 1)
                rows = torch.cat([best[number][1], places + first], 1)
                scores, order = scores.topk(min(keep, scores.shape[1]), dim=1, sorted=False)
                best[number] = scores, rows.gather(1, order)
        rows, order = torch.cat([rows for _, rows in best]).sort(dim=1)
        scores = torch.cat([scores for scores, _ in best]).gather(1, order)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        best_scores = scores.cpu().numpy()
        best_rows = rows.gather(1, order).cpu().numpy()
        ends = (best_scores >= best_scores[:, k - 1 : k]).sum(axis=1)
        return [TopRows(best_scores[n, :end], best_rows[n, :end]) for n, end in enumerate(ends)]

    def _blocks(self, rows: int) -> Iterator[tuple[int, Tensor]]:
        if self._resident is not None:
            for first in range(0, len(self._resident), rows):
                yield self._start + first, self._resident[first : first + rows]
            return
        for first, block in self._gpu.streamed(*self._vectors):
            for place in range(0, len(block), rows):
                yield first + place, block[place : place + rows]


def greatest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` greatest scores of each query, all if there are fewer, in no order, and their
    places.

    `topk` reads scores several times. Of very many, it gets only those in the `count` tiles with
    the greatest maxima, which hold the greatest scores and are found in one reading. Scores are
    float32 (n, m).
    """
    width = scores.shape[1]
    count = min(count, width)
    tile = (
        1 << (width // count).bit_length() // 2
    )  # then there are about as many tiles as scores in the best ones
    if scores.numel() <= _FEW_SCORES or tile < _LEAST_TILE:
        values, places = scores.topk(count, dim=1, sorted=False)
        return values, places
    end = width // tile * tile
    tiles = scores[:, :end].reshape(len(scores), -1, tile)
    best = tiles.amax(dim=2).topk(count, dim=1, sorted=False).indices[:, :, None]
    places = torch.arange(tile, device=scores.device) + best * tile
    chosen = torch.cat([tiles.gather(1, best.expand_as(places)).flatten(1), scores[:, end:]], dim=1)
    rest = torch.arange(end, width, device=scores.device).expand(len(scores), -1)
    values, order = chosen.topk(count, dim=1, sorted=False)
    return values, torch.cat([places.flatten(1), rest], dim=1).gather(1, order)

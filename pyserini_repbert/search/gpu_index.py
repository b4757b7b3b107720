"""Exact search on GPUs: the vectors stay in GPU memory where they fit, and one pass over them serves all queries.

Several GPUs have equal shares of the rows, and each searches its own. Scores that reach the query's threshold are kept,
block by block; whenever too many are, the threshold rises to the query's k-th best score so far.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.search.exact import TopRows, merged
from pyserini_repbert.search.gpu import Gpu, RowRange

_RESIDENT = 3 / 4  # the share of free memory that vectors may take; the rest is for scores
_SCORE_BYTES = 8  # memory of a score in a block: float32, mask, and temporaries
_HIT_BYTES = 64  # memory of a score that is kept: value, row, query, and the orders that sort them
_BUFFER = 4  # times k scores a query are kept before the thresholds rise
_MOST_SCORES = 1 << 30  # in a block: PyTorch's kernels count in 32 bits
_MOST_QUERIES = 4096  # multiplied with a block together


def open_gpus(device: torch.device) -> Sequence[Gpu]:
    """The GPUs of a device: 'cuda:1' is that one, 'cuda' all that this process sees."""
    numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
    return [Gpu(torch.device('cuda', number)) for number in numbers]


class Rows(RowRange, Protocol):
    """Vectors in blocks, and how many there are."""

    def __len__(self) -> int:
        """Number of vectors."""


class GpuIndex:
    """An index's vectors on one or several GPUs.

    The first search copies them. A GPU's share stays there if it takes at most three quarters of the free memory;
    otherwise every search streams it, once or, for very many queries, several times.

    Parameters
    ----------
    index : the vectors
    dimension : their length
    device : 'cuda:N', or 'cuda' for all GPUs that this process sees
    dtype : 'float16' or 'float32': the type in which vectors and queries are multiplied; sums are float32
    gpus : used instead of those of `device`
    """

    def __init__(
        self,
        index: Rows,
        dimension: int,
        device: torch.device,
        dtype: str = 'float16',
        gpus: Sequence[Gpu] | None = None,
    ) -> None:
        gpus = open_gpus(device) if gpus is None else gpus
        bounds = [len(index) * number // len(gpus) for number in range(len(gpus) + 1)]
        self._precision = precision = torch.float16 if dtype == 'float16' else torch.float32
        self._shares = [
            _Share(gpu, index, start, stop, dimension, precision)
            for gpu, start, stop in zip(gpus, bounds, bounds[1:], strict=False)
            if start < stop
        ]
        self._lock = threading.Lock()

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k rows with the greatest inner products, and all that tie with the last of them, for each query.

        Raises InputError for vectors of the index, or of queries, that are not finite in the dtype.

        Parameters
        ----------
        queries : float32 (n, d)
        """
        if not self._shares:
            return [TopRows(np.empty(0, np.float32), np.empty(0, np.int64)) for _ in queries]
        if np.abs(queries).max(initial=0.0) > torch.finfo(self._precision).max:
            raise InputError('a query vector is not finite in float16: search in float32', parameters=('device_dtype',))
        with self._lock, ThreadPoolExecutor(len(self._shares)) as pool:
            tops = list(pool.map(lambda share: share.search(queries, k), self._shares))
        starts = [0] * len(tops)  # rows are those of the whole index already
        return tops[0] if len(tops) == 1 else [merged(parts, starts, k) for parts in zip(*tops, strict=True)]


class _Share:
    """The rows of one GPU."""

    def __init__(self, gpu: Gpu, index: Rows, start: int, stop: int, dimension: int, dtype: torch.dtype) -> None:
        self._gpu, self._index, self._start, self._stop = gpu, index, start, stop
        self._dimension, self._dtype = dimension, dtype
        self._resident: Tensor | None = None

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """As `GpuIndex.search`, for these rows."""
        tops: list[TopRows] = []
        with self._gpu.on_device(), torch.inference_mode():
            self._load()
            k = min(k, self._stop - self._start)
            # more queries at once only where their hits have room
            at_once = max(1, self._gpu.free_memory() // 2 // (_BUFFER * k * _HIT_BYTES))
            for first in range(0, len(queries), at_once):
                group = torch.from_numpy(queries[first : first + at_once]).to(self._gpu.device, self._dtype)
                tops += self._pass(group, k)
        return tops

    def _load(self) -> None:
        size = (self._stop - self._start) * self._dimension * self._dtype.itemsize
        if self._resident is None and size <= _RESIDENT * self._gpu.free_memory():
            self._resident = self._gpu.resident(self._index, self._start, self._stop, self._dimension, self._dtype)

    def _pass(self, queries: Tensor, k: int) -> list[TopRows]:
        """One pass over the rows for all queries."""
        scores = max(1, min(_MOST_SCORES, self._gpu.free_memory() // 4 // _SCORE_BYTES))
        size = max(1, min(_MOST_QUERIES, scores // max(1, min(4 * k, self._stop - self._start)), len(queries)))
        groups = [queries[first : first + size] for first in range(0, len(queries), size)]
        best = [_Best(len(group), k, queries.device) for group in groups]
        for first, block in self._blocks(max(1, scores // size)):
            for group, collected in zip(groups, best, strict=True):
                collected.add(self._gpu.products(group, block), first)
        return [top for collected in best for top in collected.results()]

    def _blocks(self, rows: int) -> Iterator[tuple[int, Tensor]]:
        if self._resident is not None:
            for first in range(0, len(self._resident), rows):
                yield self._start + first, self._resident[first : first + rows]
            return
        for first, block in self._gpu.streamed(self._index, self._start, self._stop, self._dimension, self._dtype):
            for place in range(0, len(block), rows):
                yield first + place, block[place : place + rows]


class _Best:
    """The best scores so far of a group of queries, on their device."""

    def __init__(self, n_queries: int, k: int, device: torch.device) -> None:
        self._n, self._k = n_queries, k
        self._thresholds = torch.full((n_queries,), -torch.inf, device=device)
        self._owners = torch.empty(0, dtype=torch.int64, device=device)
        self._rows, self._scores = self._owners, torch.empty(0, device=device)

    def add(self, scores: Tensor, first: int) -> None:
        """Add the scores of a block that begins with row `first`, float32 (n_queries, n)."""
        most = _BUFFER * self._k * self._n
        mask = scores >= self._thresholds[:, None]
        if scores.shape[1] > self._k and int(mask.sum()) > most:
            kth = torch.topk(scores, self._k, dim=1, sorted=False).values.amin(dim=1)
            self._thresholds = torch.maximum(self._thresholds, kth)
            mask = scores >= self._thresholds[:, None]
        owners, places = mask.nonzero(as_tuple=True)
        self._owners = torch.cat([self._owners, owners])
        self._rows = torch.cat([self._rows, places + first])
        self._scores = torch.cat([self._scores, scores[owners, places]])
        if len(self._owners) > most:
            self._compact()

    def _compact(self) -> Tensor:
        """Sort each query's scores, best first, ties in the order of rows, and discard those below the k-th.

        Returns how many each query has left, int64 (n_queries,).
        """
        order = torch.argsort(self._scores, descending=True, stable=True)
        order = order[torch.argsort(self._owners[order], stable=True)]
        owners, rows, scores = self._owners[order], self._rows[order], self._scores[order]
        counts = torch.bincount(owners, minlength=self._n)
        last = torch.cumsum(counts, 0) - counts + self._k - 1
        enough = counts >= self._k
        kth = scores[torch.where(enough, last, 0)] if len(scores) else self._thresholds
        self._thresholds = torch.where(enough, torch.maximum(self._thresholds, kth), self._thresholds)
        keep = scores >= self._thresholds[owners]
        self._owners, self._rows, self._scores = owners[keep], rows[keep], scores[keep]
        return torch.bincount(self._owners, minlength=self._n)

    def results(self) -> list[TopRows]:
        """Each query's k best rows and all that tie with the last of them, best first."""
        ends = torch.cumsum(self._compact(), 0).tolist()
        rows, scores = self._rows.cpu().numpy(), self._scores.cpu().numpy()
        return [TopRows(scores[a:b], rows[a:b]) for a, b in zip([0, *ends], ends, strict=False)]

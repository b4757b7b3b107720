"""One GPU for exact search: its free memory, its products, and the copies of vectors to it.

All calls to CUDA are made here, so that tests can replace them on a machine without a GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.search.products import tensor_of

# The size of each of the two buffers through which vectors are copied.
STAGE_BYTES = 128 << 20
# One is multiplied while the other is filled.
_BUFFERS = 2


class Gpu:
    """A CUDA device, given with its number, and a separate stream for copies."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._copies: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def free_memory(self) -> int:
        """Bytes available: free memory, and memory that PyTorch has reserved but not allocated."""
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0]) + kept

    def products(self, queries: Tensor, block: Tensor) -> Tensor:
        """Inner products, float32 (n queries, n rows).

        Products of float16 are summed in float32.
        """
        if block.dtype == torch.float16:
            return torch.mm(queries, block.T, out_dtype=torch.float32)
        return queries @ block.T

    def resident(
        self, index: DenseBundle, start: int, stop: int, dimension: int, dtype: torch.dtype
    ) -> Tensor:
        """The vectors of rows `start` to `stop` - 1, (n, dimension), in the device's memory.

        `index`, `dimension`, `dtype` and the errors are as in `streamed`.
        """
        whole = torch.empty((stop - start, dimension), dtype=dtype, device=self.device)
        for first, block in self.streamed(index, start, stop, dimension, dtype):
            whole[first - start : first - start + len(block)] = block
        return whole

    def streamed(
        self, index: DenseBundle, start: int, stop: int, dimension: int, dtype: torch.dtype
    ) -> Iterator[tuple[int, Tensor]]:
        """Blocks of an index's vectors in the device's memory, in order.

        Yields (first row, vectors (n, dimension)); each block is valid until the next one. Two
        buffers alternate: while one block is used, the next is copied.

        Parameters
        ----------
        index : the bundle whose vectors are copied
        start, stop : the rows, from `start` to `stop` - 1
        dimension : length of a vector
        dtype : float16 or float32, on the device

        Raises InputError for vectors that are not finite in this dtype.
        """
        rows = max(1, min(stop - start, STAGE_BYTES // (dimension * dtype.itemsize)))
        slots = itertools.cycle([_Slot(self, rows, dimension, dtype) for _ in range(_BUFFERS)])
        finite = torch.ones((), dtype=torch.bool, device=self.device)
        blocks: Iterable[tuple[int, StoredVectors] | None] = index.blocks(rows, start, stop)
        waiting: tuple[int, _Slot, Tensor] | None = None
        for block in itertools.chain(blocks, [None]):
            copying = None
            if block:
                copying = next(slots).filled(*block)
            if waiting is not None:
                first, slot, vectors = waiting
                self.wait(slot.copied)
                finite &= torch.isfinite(vectors).all()
                yield first, vectors
                slot.used = self.mark()
            waiting = copying
        if not finite.item():
            name = str(dtype).removeprefix('torch.')
            raise InputError(
                f'the index holds vectors that are not finite in {name}: search it in float32, or '
                f'see `index check`',
                parameters=('device_dtype',),
            )

    def pinned(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Host memory that the device can read directly."""
        return torch.empty(shape, dtype=dtype, pin_memory=True)

    def copy(self, source: Tensor, target: Tensor, after: Any) -> Any:
        """Copy in the stream for copies, after the event `after`.

        Returns the event of the copy's end.
        """
        with torch.cuda.stream(self._copies):
            self._copies.wait_event(after)
            target.copy_(source, non_blocking=True)
            return self._copies.record_event()

    def mark(self) -> Any:
        """An event that occurs when the device has completed all work submitted so far."""
        return torch.cuda.current_stream(self.device).record_event()

    def wait(self, event: Any) -> None:
        """Make work submitted from now on wait for an event."""
        torch.cuda.current_stream(self.device).wait_event(event)

    def on_device(self) -> AbstractContextManager[Any]:
        """A context in which this device is the thread's current one."""
        return torch.cuda.device(self.device)


class _Slot:
    """A pinned buffer on the host, and the buffer on the device to which it is copied.

    Attributes
    ----------
    copied : the event of the last copy's end
    used : the event after which the device no longer reads the last vectors
    """

    def __init__(self, gpu: Gpu, rows: int, dimension: int, dtype: torch.dtype) -> None:
        self._gpu = gpu
        self._host = gpu.pinned((rows, dimension), dtype)
        self._block = torch.empty((rows, dimension), dtype=dtype, device=gpu.device)
        now = gpu.mark()
        self.copied = now
        self.used = now

    def filled(self, first: int, vectors: StoredVectors) -> tuple[int, _Slot, Tensor]:
        """Start copying the vectors from row `first` on.

        It waits until the previous ones have been copied and used.
        """
        self.copied.synchronize()
        host = self._host[: len(vectors)]
        block = self._block[: len(vectors)]
        host.copy_(tensor_of(vectors))
        self.copied = self._gpu.copy(host, block, self.used)
        return first, self, block

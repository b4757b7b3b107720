"""Exact search on one CUDA device: MS MARCO's number of vectors, made there.

python benchmarks/gpu_search.py [--vectors 8841823] [--dimension 768] [--queries 6980] [--hits 1000]
[--stream 2000000]

Vectors and queries are standard normal. All queries, and one, are searched in float16 vectors that
stay on the device; `streamed` searches --stream vectors that pass from memory through the pinned
buffers once. For comparison, the times of the matrix products alone, and of reading all vectors
once, are printed. FAISS's flat GPU index is timed if FAISS has one. `gpu.py` times whole commands.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import faiss
import figures
import numpy as np
import torch
from figures import Figure
from numpy.typing import NDArray
from rounds import best_times
from torch import Tensor

from pyserini_repbert.search.gpu import Gpu
from pyserini_repbert.search.gpu_index import GpuIndex

_MADE = 262_144  # vectors made at a time
_STREAMED = 1000  # queries that fit into one pass


class Made(Gpu):
    """A GPU that makes its resident vectors itself."""

    def resident(
        self, index: object, start: int, stop: int, dimension: int, dtype: torch.dtype
    ) -> Tensor:
        """Standard normal (stop - start, dimension)."""
        whole = torch.empty((stop - start, dimension), dtype=dtype, device=self.device)
        for first in range(0, len(whole), _MADE):
            whole[first : first + _MADE].normal_()
        return whole


class Counted:
    """An index that has only a number of vectors: `Made` makes them on the device."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def blocks(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.float16]]]:
        """No blocks."""
        yield from ()


class InMemory(Counted):
    """Vectors in the host's memory."""

    def __init__(self, vectors: NDArray[np.float16]) -> None:
        super().__init__(len(vectors))
        self.vectors = vectors

    def blocks(
        self, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.float16]]]:
        """Blocks of rows."""
        end = len(self) if stop is None else stop
        for first in range(start, end, size):
            yield first, self.vectors[first : min(first + size, end)]


class Full(Gpu):
    """A GPU on which vectors never stay."""

    def resident(self, *_: object) -> Tensor:
        """Never called, since `free_memory` is too small for vectors."""
        raise MemoryError

    def free_memory(self) -> int:
        """Enough for scores, not for the vectors."""
        return min(super().free_memory(), self.room)

    room = 1 << 30


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """The shortest time of `rounds`, each until the device is done."""

    def done() -> None:
        work()
        torch.cuda.synchronize()

    return best_times({'': done}, rounds)['']


def resident(
    options: argparse.Namespace, device: torch.device, queries: NDArray[np.float32]
) -> tuple[float, float]:
    """Seconds of all queries, and of one."""
    gpu = Made(device)
    size = options.vectors * options.dimension * 2
    if size > gpu.free_memory() * 3 / 4:
        sys.exit(
            f'{size / 1e9:.0f} GB of vectors do not fit: {gpu.free_memory() / 1e9:.0f} GB are '
            f'free (--vectors)'
        )
    index = GpuIndex(Counted(options.vectors), options.dimension, device, gpus=[gpu])
    many = seconds(lambda: index.search(queries, options.hits))
    return many, seconds(lambda: index.search(queries[:1], options.hits), 10)


def main() -> None:
    """Time them, print figures."""
    parser = figures.parser(
        __doc__, vectors=8_841_823, dimension=768, queries=6980, hits=1000, stream=2_000_000
    )
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit('gpu_search.py needs a CUDA device: this machine has none that PyTorch sees')
    n = options.vectors
    d = options.dimension
    k = options.hits
    device = torch.device('cuda', 0)
    print(f'{torch.cuda.get_device_name(0)}, {n:,} x {d} float16, top {k}')
    queries = np.random.default_rng(0).standard_normal((options.queries, d), dtype=np.float32)
    many, one = resident(options, device, queries)
    few = torch.randn(_MADE, d, device=device, dtype=torch.float16)
    asked = torch.from_numpy(queries[:4096]).to(device, torch.float16)
    product = (
        seconds(lambda: torch.mm(asked, few.T, out_dtype=torch.float32), 5) / len(asked) / len(few)
    )
    reading = seconds(lambda: few.sum(), 5) / few.nbytes
    floors = product * n * options.queries, 1000 * reading * n * d * 2
    print(f'  products alone {floors[0]:.2f} s; reading all vectors once {floors[1]:.1f} ms')
    told = [
        Figure(f'resident {n:,} x {d}, {options.queries} queries', many, 's', 0.5, at_most=True),
        Figure(f'resident {n:,} x {d}, one query', 1000 * one, 'ms', 6.5, at_most=True),
    ]
    own = InMemory(
        np.random.default_rng(1)
        .standard_normal((options.stream, d), dtype=np.float32)
        .astype(np.float16)
    )
    streaming = GpuIndex(own, d, device, gpus=[Full(device)])
    streamed = seconds(lambda: streaming.search(queries[:_STREAMED], k), 2)
    told.append(
        Figure(
            f'streamed from memory, {_STREAMED} queries',
            own.vectors.nbytes / 1e9 / streamed,
            'GB/s',
        )
    )
    if hasattr(faiss, 'StandardGpuResources'):
        settings = faiss.GpuIndexFlatConfig()
        settings.useFloat16 = True
        flat = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), d, settings)
        flat.add(own.vectors.astype(np.float32))
        same = GpuIndex(own, d, device)
        both = {'ours': lambda: same.search(queries, k), 'faiss': lambda: flat.search(queries, k)}
        times = best_times(both, 3)
        told.append(
            Figure(
                f'{options.stream:,} x {d}, all queries: FAISS GPU flat',
                times['faiss'] / times['ours'],
            )
        )
    else:
        print('  FAISS has no GPU index here: not compared')
    figures.tell(options, told)


if __name__ == '__main__':
    main()

"""Exact search of vectors in float16 and int8 against float32: bytes, and the time of a search.

python benchmarks/smaller_vectors.py [--size 100000] [--queries 200] [--hits 1000] [--threads 2]

With one thread, times are the processor's, so that other programs affect all alike.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import figures
import numpy as np
import torch
from figures import Figure
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.commands.command import threads
from pyserini_repbert.index.quantized import Int8Vectors, stored_as
from pyserini_repbert.index.records import VECTOR_DTYPES
from pyserini_repbert.search.exact import ArrayVectors, ExactIndex

DIMENSION = 384


def measured(options: argparse.Namespace) -> list[Figure]:
    """Time searches in vectors of each type in memory; print times and bytes."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((options.size, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = random.standard_normal((options.queries, DIMENSION), dtype=np.float32)
    contenders = {}
    sizes = {}
    for dtype in VECTOR_DTYPES:
        stored = stored_as(vectors, dtype)
        sizes[dtype] = options.size * DIMENSION * stored.dtype.itemsize
        if isinstance(stored, Int8Vectors):
            sizes[dtype] += stored.scales.nbytes
        index = ExactIndex(ArrayVectors(stored))
        for count in (1, options.queries):
            contenders[f'{dtype}, {count}'] = _search(index, queries[:count], options.hits)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times = best_times(contenders, options.rounds, clock)
    print(f'{options.size:,} x {DIMENSION}, top {options.hits}, {options.threads} threads')
    found = []
    for dtype in VECTOR_DTYPES:
        print(f'  {dtype:8s} {sizes[dtype] / 1e6:8.1f} MB')
        for count in (1, options.queries):
            seconds = times[f'{dtype}, {count}']
            print(f'    queries: {count:4d} {1000 * seconds:10.1f} ms')
            if dtype != 'float32':
                name = f'exact search, {dtype}, queries: {count}: the time of float32'
                found.append(Figure(name, times[f'float32, {count}'] / seconds))
    return found


def _search(index: ExactIndex, queries: NDArray[np.float32], hits: int) -> Callable[[], object]:
    return lambda: index.search(queries, hits)


def main() -> None:
    """Measure, print ratios."""
    parser = figures.parser(__doc__, queries=200, hits=1000, rounds=7)
    parser.add_argument('--size', type=int, default=100_000)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    figures.tell(options, measured(options))


if __name__ == '__main__':
    main()

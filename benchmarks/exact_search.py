"""Exact inner-product search: ours, FAISS IndexFlatIP, and a loop with a priority queue for each
query (RepBERT-Index).

python benchmarks/exact_search.py [--sizes 100000 1000000] [--queries 200] [--hits 1000] [--threads
2]

A million vectors take 3 GB on disk and up to 8 GB of memory, the file's pages included.
"""

from __future__ import annotations

import argparse
import heapq
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import faiss
import figures
import numpy as np
import torch
from figures import Figure
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.commands.command import threads
from pyserini_repbert.search.exact import ExactIndex

DIMENSION = 768
GOALS = {
    100_000: (1.3, 2.5),
    1_000_000: (2.5, 3.5),
}  # for many queries and one, where the CPU has bfloat16
GOAL_THREADS = 15
LOOP_QUERIES = 4  # the loop is slow: timed on a few queries, then scaled


class Mapped:
    """Vectors in a .npy file, memory-mapped, as a bundle has them."""

    def __init__(self, path: Path) -> None:
        self.vectors: NDArray[np.float32] = np.load(path, mmap_mode='c')

    def __len__(self) -> int:
        return len(self.vectors)

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Blocks of rows."""
        for first in range(0, len(self), size):
            yield first, self.vectors[first : first + size]


def priority_queue(
    vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int
) -> list[list[tuple[float, int]]]:
    """One query at a time: all scores, each pushed through a heap of the k best."""
    found = []
    for query in queries:
        heap: list[tuple[float, int]] = []
        for row, score in enumerate(vectors @ query):
            if len(heap) < k:
                heapq.heappush(heap, (score, row))
            elif score > heap[0][0]:
                heapq.heapreplace(heap, (score, row))
        found.append(sorted(heap, reverse=True))
    return found


def measured(count: int, options: argparse.Namespace, folder: Path) -> list[Figure]:
    """Time the contenders with `count` vectors, print times, and how far ours and FAISS agree."""
    random = np.random.default_rng(0)
    path = folder / f'{count}.npy'
    stored = np.lib.format.open_memmap(path, 'w+', np.float32, (count, DIMENSION))
    for block in np.array_split(stored, -(-count // 100_000)):
        random.standard_normal(out=block, dtype=np.float32)
    queries = random.standard_normal((options.queries, DIMENSION), dtype=np.float32)
    flat = faiss.IndexFlatIP(DIMENSION)
    flat.add(stored)
    del stored, block
    vectors = Mapped(path)
    ours = ExactIndex(vectors)

    def one_thread() -> None:
        torch.set_num_threads(1)
        ours.search(queries, options.hits)
        torch.set_num_threads(options.threads)

    contenders = {
        'ours, one thread': one_thread,
        'ours': lambda: ours.search(queries, options.hits),
        'faiss': lambda: flat.search(queries, options.hits),
        'one query, ours': lambda: ours.search(queries[:1], options.hits),
        'one query, faiss': lambda: flat.search(queries[:1], options.hits),
    }
    tops = ours.search(queries, options.hits)
    rows = flat.search(queries, options.hits)[1]
    same = np.mean(
        [
            (top.rows[: options.hits] == places).mean()
            for top, places in zip(tops, rows, strict=True)
        ]
    )
    times = best_times(contenders, options.rounds)
    few = queries[:LOOP_QUERIES]
    loop = best_times({'': lambda: priority_queue(vectors.vectors, few, options.hits)}, 1)['']
    times['loop'] = loop * options.queries / LOOP_QUERIES
    size = f'{count:,} x {DIMENSION}'
    print(f'{size}, {options.queries} queries, top {options.hits}, {options.threads} threads')
    for name, seconds in times.items():
        print(f'  {name:18s} {1000 * seconds:10.1f} ms')
    print(
        f'  rows in the same place as with FAISS: {100 * same:.3f}% (the rest differ by rounding)'
    )
    many = times['faiss'] / times['ours']
    one = times['one query, faiss'] / times['one query, ours']
    goals = GOALS.get(count, (None, None))
    return [
        Figure(f'exact search, {size}, {options.queries} queries: FAISS flat', many, 'x', goals[0]),
        Figure(
            f'exact search, {size}, one query: FAISS flat',
            one,
            'x',
            goals[1],
        ),
        Figure(f'exact search, {size}: a priority queue a query', times['loop'] / times['ours']),
        Figure(
            f'exact search, {size}, {options.queries} queries: threads x time over the time of '
            f'one thread',
            100 * (options.threads * times['ours'] / times['ours, one thread'] - 1),
            '%',
            GOAL_THREADS,
            at_most=True,
        ),
    ]


def main() -> None:
    """Measure each size, print ratios."""
    parser = figures.parser(__doc__, queries=200, hits=1000, rounds=5)
    parser.add_argument('--sizes', type=int, nargs='+', default=list(GOALS))
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        figures.tell(
            options,
            [
                figure
                for count in options.sizes
                for figure in measured(count, options, Path(folder))
            ],
        )


if __name__ == '__main__':
    main()

"""Exact inner-product search: ours, FAISS IndexFlatIP, and a loop with a priority queue for each query (RepBERT-Index).

python benchmarks/exact_search.py [--vectors 100000] [--queries 200] [--hits 1000] [--threads 2]
"""

from __future__ import annotations

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
from pyserini_repbert.search import exact

DIMENSION = 768
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


def priority_queue(vectors: NDArray[np.float32], queries: NDArray[np.float32], k: int) -> list[list[tuple[float, int]]]:
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


def main() -> None:
    """Time the three, print how far ours and FAISS agree, and ratios."""
    parser = figures.parser(__doc__, vectors=100_000, queries=200, hits=1000, rounds=7)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    random = np.random.default_rng(0)
    vectors = random.standard_normal((options.vectors, DIMENSION), dtype=np.float32)
    queries = random.standard_normal((options.queries, DIMENSION), dtype=np.float32)
    flat = faiss.IndexFlatIP(DIMENSION)
    flat.add(vectors)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / 'vectors.npy', vectors)
        ours = Mapped(Path(folder) / 'vectors.npy')
        reference = flat.search(queries, options.hits)[1]
        found = exact.search(ours, queries, options.hits)
        same = np.mean([(top.rows[: options.hits] == rows).mean() for top, rows in zip(found, reference, strict=True)])
        times = best_times(
            {
                'ours': lambda: exact.search(ours, queries, options.hits),
                'faiss': lambda: flat.search(queries, options.hits),
                'one query, ours': lambda: exact.search(ours, queries[:1], options.hits),
                'one query, faiss': lambda: flat.search(queries[:1], options.hits),
            },
            options.rounds,
        )
        loop = best_times({'loop': lambda: priority_queue(vectors, queries[:LOOP_QUERIES], options.hits)}, 1)['loop']
    times['loop'] = loop * options.queries / LOOP_QUERIES
    print(
        f'{options.vectors:,} x {DIMENSION}, {options.queries} queries, top {options.hits}, {options.threads} threads'
    )
    for name, seconds in times.items():
        print(f'  {name:18s} {1000 * seconds:10.1f} ms')
    print(f'  rows in the same place as with FAISS: {100 * same:.3f}% (the rest differ by rounding)')
    size = f'{options.vectors:,} x {DIMENSION}'
    one = times['one query, faiss'] / times['one query, ours']
    many = times['faiss'] / times['ours']
    figures.tell(
        options,
        [
            Figure(f'exact search, {size}, {options.queries} queries: FAISS flat', many, 'x', 1, headline=True),
            Figure(f'exact search, {size}, one query: FAISS flat', one, 'x', 1, headline=True),
            Figure(f'exact search, {size}: a priority queue a query', times['loop'] / times['ours']),
        ],
    )


if __name__ == '__main__':
    main()

"""A trial: exact search by 8-bit rows and bounds, against this package's exact search and FAISS IndexFlatIP.

python benchmarks/int8_bounds.py [--vectors 100000] [--dimension 384] [--queries 200] [--hits 1000] [--threads 2]

Each row x is kept in 8 bits a dimension, as x', with the norm of x - x'. As |q.x - q.x'| <= |q| |x - x'|, the k-th
greatest lower bound excludes all rows whose upper bound is below it; what is left is scored with the rows themselves,
so that the hits are those of exact search (their last digits may differ). Two ways to the products with x':

- `faiss`: FAISS's scalar quantiser with 8 bits, float32 queries; its best 4 k rows, or all rows if the bounds show that
  these may be too few
- `int_mm`: PyTorch's product of 8-bit integers (VNNI, AMX); the query is rounded too, which widens the bound

The vectors are those of `ann.py`. `left` is the mean share of rows that the bounds leave.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator

import faiss
import numpy as np
import torch
from ann import clustered
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.commands.command import threads
from pyserini_repbert.search import exact

_DEPTH = 4  # rows asked of FAISS, in units of k
_GROUP = 32  # queries in an integer product


class Rows:
    """An array in blocks, as a bundle gives it."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.vectors)

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Blocks of rows."""
        for first in range(0, len(self), size):
            yield first, self.vectors[first : first + size]


class Rounded:
    """Vectors float32 (n, d) in 8 bits, rounded in both ways, and the norms of the rounding errors, float32 (n,).

    Attributes
    ----------
    left : for each query searched, the share of rows that the bounds leave
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.steps = np.abs(vectors).max(axis=0) / 127
        self.rows = np.rint(vectors / self.steps).astype(np.int8)
        self.errors = np.linalg.norm(vectors - self.steps * self.rows, axis=1) * (1 + 1e-5)
        self.norm = float(np.linalg.norm(self.rows.astype(np.float32), axis=1).max())
        self.flat = faiss.index_factory(vectors.shape[1], 'SQ8', faiss.METRIC_INNER_PRODUCT)
        self.flat.train(vectors)
        self.flat.add(vectors)
        self.decoded = self.flat.reconstruct_n(0, len(vectors))
        self.faiss_errors = np.linalg.norm(vectors - self.decoded, axis=1) * (1 + 1e-5)
        self.transposed = torch.from_numpy(self.rows).T
        self.left: list[float] = []

    def by_faiss(self, queries: NDArray[np.float32], k: int) -> list[NDArray[np.int64]]:
        """The k best rows of each query, best first."""
        depth, errors = min(len(self.rows), _DEPTH * k), self.faiss_errors
        values, rows = self.flat.search(queries, depth)
        found = []
        for query, approximate, own in zip(queries, values, rows, strict=True):
            length = float(np.linalg.norm(query))
            lower = approximate - length * errors[own]
            bar = np.partition(lower, depth - k)[depth - k]
            if depth < len(self.rows) and approximate[-1] + length * errors.max() >= bar:
                approximate, own = self.decoded @ query, np.arange(len(self.rows))
            found.append(self._best(query, own[approximate + length * errors[own] >= bar], k))
        return found

    def by_integers(self, queries: NDArray[np.float32], k: int) -> list[NDArray[np.int64]]:
        """The k best rows of each query, best first."""
        found = []
        errors = torch.from_numpy(self.errors)
        for start in range(0, len(queries), _GROUP):
            asked = queries[start : start + _GROUP]
            group = asked * self.steps
            steps = np.abs(group).max(axis=1, keepdims=True) / 127
            whole = np.rint(group / steps).astype(np.int8)
            lost = np.linalg.norm(group - steps * whole, axis=1) * (1 + 1e-5)
            products = torch._int_mm(torch.from_numpy(whole), self.transposed).float()
            for query, own, step, away in zip(asked, products, steps[:, 0], lost, strict=True):
                margin = float(np.linalg.norm(query)) * errors + float(away) * self.norm
                own = own * float(step)
                bar = torch.topk(own - margin, k, sorted=False).values.min()
                found.append(self._best(query, torch.nonzero(own + margin >= bar)[:, 0].numpy(), k))
        return found

    def _best(self, query: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        self.left.append(len(rows) / len(self.rows))
        rows = np.sort(rows)
        scores = np.empty(len(rows), np.float32)
        pointers = (faiss.swig_ptr(array) for array in (scores, query, self.vectors, rows))
        faiss.fvec_inner_products_by_idx(*pointers, len(query), 1, len(rows))
        best: NDArray[np.int64] = rows[np.argsort(-scores, kind='stable')[:k]]
        return best


def main() -> None:
    """Time them, check that they agree, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--vectors', type=int, default=100_000)
    parser.add_argument('--dimension', type=int, default=384)
    parser.add_argument('--queries', type=int, default=200)
    parser.add_argument('--hits', type=int, default=1000)
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    everything = clustered(options.vectors + options.queries, options.dimension)
    vectors, queries = everything[: options.vectors], everything[options.vectors :]
    index, rounded, k = Rows(vectors), Rounded(vectors), options.hits
    flat = faiss.IndexFlatIP(options.dimension)
    flat.add(vectors)
    truth = [top.rows[:k] for top in exact.search(index, queries, k)]
    ways: dict[str, Callable[[NDArray[np.float32]], object]] = {
        'exact': lambda asked: exact.search(index, asked, k),
        'faiss flat': lambda asked: flat.search(asked, k),
        'int8, faiss': lambda asked: rounded.by_faiss(asked, k),
        'int8, int_mm': lambda asked: rounded.by_integers(asked, k),
    }
    print(f'{len(vectors):,} x {options.dimension}, top {k}, {options.threads} threads')
    for name, way in (('int8, faiss', rounded.by_faiss), ('int8, int_mm', rounded.by_integers)):
        rounded.left.clear()
        same = np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(way(queries, k), truth, strict=True)])
        print(f'  {name:13s} left {np.mean(rounded.left):.4f} of the rows; {same:.6f} of the hits are those of exact')
    for label, asked in (('one query', queries[:1]), (f'{len(queries)} queries', queries)):
        times = best_times(
            {name: lambda way=way, asked=asked: way(asked) for name, way in ways.items()}, options.rounds
        )
        for name, seconds in times.items():
            print(f'  {label:12s} {name:13s} {1000 * seconds:9.1f} ms; exact / it {times["exact"] / seconds:.2f}')


if __name__ == '__main__':
    main()

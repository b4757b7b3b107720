"""Approximate search: recall of exact search's hits and how much faster it is, for one query and
for many.

python benchmarks/ann.py [--vectors 100000] [--dimension 384] [--queries 200] [--hits 1000]
[--recall 0.98] [--kinds pq]

The vectors are unit vectors in Gaussian clusters, one for each 100 vectors. Centres are standard
normal times 1/sqrt(rank) along the dimension of that rank, as the spectrum of text vectors falls;
within a cluster the spread is 0.7 of that. Queries come from the same distribution and are not
among the passages. FAISS's own refinement of the same codes is timed beside ours.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import faiss
import figures
import numpy as np
import torch
from figures import Figure
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.commands.command import threads
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
from pyserini_repbert.extensions.approximate.bundles import BundleAnn
from pyserini_repbert.extensions.approximate.dense_candidates import mean_recall
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.models.threads import faiss_threads
from pyserini_repbert.search.exact import ExactIndex

_SPREAD = 0.7  # within a cluster, of that of the centres


class Rows:
    """An encoder of row numbers: a passage's text is the number of its vector's row."""

    name = 'rows'
    weights_sha256 = '0' * 64
    limit = 1
    precision = 'float32'
    pooling = 'mean'
    config_sha256 = tokenizer_sha256 = None

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.dimension = vectors.shape[1]

    def embed(self, texts: list[str], **_: object) -> NDArray[np.float32]:
        """Rows by number."""
        return self.vectors[[int(text) for text in texts]]


def clustered(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors of the distribution above, float32 (count, dimension)."""
    random = np.random.default_rng(seed)
    scale = (np.arange(1, dimension + 1) ** -0.5).astype(np.float32)
    n_centres = max(1, count // 100)
    centres = random.standard_normal((n_centres, dimension), dtype=np.float32)
    noise = random.standard_normal((count, dimension), dtype=np.float32)
    vectors = (centres[random.integers(n_centres, size=count)] + _SPREAD * noise) * scale
    found: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def main() -> None:
    """Build each kind, time it against exact search, print ratios."""
    parser = figures.parser(
        __doc__, vectors=100_000, dimension=384, queries=200, hits=1000, rounds=3
    )
    parser.add_argument('--recall', type=float, default=0.98)
    parser.add_argument('--kinds', nargs='+', default=['pq'], choices=('pq', 'hnsw', 'ivf'))
    parser.add_argument('--threads', type=threads, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    everything = clustered(options.vectors + options.queries, options.dimension)
    vectors = everything[: options.vectors]
    queries = everything[options.vectors :]
    n = len(queries)
    k = options.hits
    print(f'{len(vectors):,} x {options.dimension}, top {k}, {options.threads} threads')
    told: list[Figure] = []
    with tempfile.TemporaryDirectory() as place, faiss_threads(options.threads):
        folder = Path(place) / 'bundle'
        passages = (Passage(f'd{row}', str(row)) for row in range(len(vectors)))
        encode_corpus(passages, Rows(vectors), folder)  # type: ignore[arg-type]
        bundle = DenseBundle(folder)
        exact_index = ExactIndex(bundle)
        truth = exact_index.search(queries, k)
        for kind in options.kinds:
            start = time.perf_counter()
            settings = AnnSettings(kind, options.recall, k, threads=options.threads)
            record = build_ann(bundle.folder, settings, overwrite=True)
            seconds = time.perf_counter() - start
            index = BundleAnn(bundle)
            contenders = {
                'exact, one': lambda: exact_index.search(queries[:1], k),
                'ann, one': lambda index=index: index.search(queries[:1], k),
                'exact, many': lambda: exact_index.search(queries, k),
                'ann, many': lambda index=index: index.search(queries, k),
            }
            if kind == 'pq':
                refined = faiss.index_factory(
                    options.dimension,
                    f'{record.factory},Refine(SQfp16)',
                    faiss.METRIC_INNER_PRODUCT,
                )
                with faiss_threads(1):
                    refined.train(vectors[:4096])
                refined.add(vectors)
                refined.k_factor = record.candidates / k
                contenders['faiss refined, one'] = lambda refined=refined: refined.search(
                    queries[:1], k
                )
                contenders['faiss refined, many'] = lambda refined=refined: refined.search(
                    queries, k
                )
            times = best_times(contenders, options.rounds)
            reached = mean_recall(truth, index.search(queries, k), k)
            size = (folder / 'ann' / 'index.faiss').stat().st_size
            print(
                f'{record}; built and measured in {seconds:.0f} s, {size / len(vectors):.0f} '
                f'bytes a vector'
            )
            for name, each in times.items():
                print(f'  {name:20s} {1000 * each:9.1f} ms')
            told += [
                Figure(
                    f'approximate search ({kind}), recall@{k} on {n} other queries',
                    reached,
                    '',
                    options.recall,
                ),
                Figure(
                    f'approximate search ({kind}), one query: exact',
                    times['exact, one'] / times['ann, one'],
                ),
                Figure(
                    f'approximate search ({kind}), {n} queries: exact',
                    times['exact, many'] / times['ann, many'],
                ),
            ]
    figures.tell(options, told)


if __name__ == '__main__':
    main()

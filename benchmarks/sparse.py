"""Exact search by term weights against scipy.sparse: milliseconds a query, and opening.

The bundle holds random vectors of 150 terms of BERT's vocabulary, frequent ones more often, as
`epic.py` draws them; a query has 30. scipy.sparse multiplies the passages' matrix by the query's
vector; it sums the query's columns in a second form. Both then take the 1,000 best. Methods take
turns query by query, on one core, timed by the processor's clock. The last lines are the ratios.

    OMP_NUM_THREADS=1 python benchmarks/sparse.py [--passages 100000]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import epic
import figures
import numpy as np
import scipy.sparse
import torch
from figures import Figure

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.indexes.term_weights.searcher import TermWeightsSearcher
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

HITS = 1000
DIFFERENT = 4096


def term_settings() -> TermWeightsSettings:
    """The settings of a bundle of BERT's term weights, in float32, by an encoder that draws
    them.
    """
    return TermWeightsSettings(
        encoder='random',
        weights_sha256='0' * 64,
        variant='sparse_encoder',
        vocabulary=epic.VOCABULARY,
        vocabulary_sha256='1' * 64,
        max_length=512,
        prune=0,
        weights='float32',
        precision='float32',
        shard_size=65536,
        texts=False,
        layout='blocks',
    )


def build(folder: Path, n: int, r: int) -> TermWeightsBundle:
    """Write a bundle of n passages of r terms, in float32."""
    settings = term_settings()
    random = np.random.default_rng(0)
    vectors = epic.random_vectors(random, DIFFERENT, r)

    def encode(passages: Sequence[Passage]) -> TermVectors:
        rows = random.integers(0, DIFFERENT, len(passages))
        # Weights differ, so that few scores are equal.
        chosen = []
        for row in rows.tolist():
            vector = vectors[row]
            noise = random.random(len(vector), dtype=np.float32)
            chosen.append(TermVector(vector.terms, vector.weights + noise))
        return TermVectors.of(chosen)

    passages = (Passage(f'D{row}', '') for row in range(n))
    build_bundle(
        passages, folder, BundleEncoding(settings, TermWeightsShardWriter, encode, DIFFERENT)
    )
    return TermWeightsBundle(folder, verify=False)


def open_searcher(bundle: TermWeightsBundle) -> TermWeightsSearcher:
    """A searcher of vectors, without a model."""
    settings = bundle.settings
    encoder = SimpleNamespace(
        name=settings.encoder,
        variant=settings.variant,
        vocabulary=settings.vocabulary,
        vocabulary_sha256=settings.vocabulary_sha256,
        weights_sha256=settings.weights_sha256,
    )
    return TermWeightsSearcher(bundle, encoder)


def draw_queries(bundle: TermWeightsBundle, n: int, r: int) -> list[TermVector]:
    """n queries of r terms each, of two passages."""
    random = np.random.default_rng(1)
    queries = []
    for _ in range(n):
        rows = random.choice(len(bundle), 2, replace=False).tolist()
        pool = np.unique(np.concatenate([bundle.vector(row).terms for row in rows]))
        terms = np.sort(random.choice(pool, r, replace=False))
        queries.append(TermVector(terms, random.random(r, dtype=np.float32)))
    return queries


def passage_matrix(bundle: TermWeightsBundle) -> scipy.sparse.csr_matrix:
    """The passages' vectors as rows, float32 (n, |V|)."""
    parts = [vectors for _, vectors in bundle.vectors()]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    terms = np.concatenate([part.terms.astype(np.int32) for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    return scipy.sparse.csr_matrix((weights, terms, offsets), (len(bundle), epic.VOCABULARY))


def best_of(scores: np.ndarray) -> np.ndarray:
    """The rows of the best scores, best first."""
    rows = np.argpartition(scores, -HITS)[-HITS:]
    return rows[np.argsort(-scores[rows])]


def main() -> None:
    """Run all and print."""
    parser = figures.parser(__doc__)
    parser.add_argument('--passages', type=int, default=100_000)
    parser.add_argument('--terms', type=int, default=150)
    parser.add_argument('--query-terms', type=int, default=30)
    parser.add_argument('--queries', type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        bundle = build(Path(folder) / 'bundle', options.passages, options.terms)
        start = time.thread_time()
        searcher = open_searcher(bundle)
        opening = time.thread_time() - start
        matrix = passage_matrix(bundle)
        columns = matrix.tocsc()
        queries = draw_queries(bundle, options.queries, options.query_terms)
        dense = [query.weights_of(np.arange(epic.VOCABULARY)) for query in queries]
        for query, vector in list(zip(queries, dense, strict=True))[:5]:
            expected = matrix @ vector
            hits = searcher.of_vector(query, HITS)
            np.testing.assert_allclose(hits.scores, expected[best_of(expected)], rtol=1e-5)
        methods = {
            'postings': lambda i: searcher.of_vector(queries[i], HITS),
            'scipy.sparse, rows': lambda i: best_of(matrix @ dense[i]),
            'scipy.sparse, columns': lambda i: best_of(
                columns[:, queries[i].terms] @ queries[i].weights
            ),
        }
        times = epic.interleaved(methods, options.queries)
    for name, value in times.items():
        print(f'{name}: {value:.2f} ms a query of {options.query_terms} terms')
    print(f'opening {options.passages:,} passages of {options.terms} terms: {opening:.1f} s')
    ours = times['postings']
    told = []
    for name in ('rows', 'columns'):
        peer = times[f'scipy.sparse, {name}']
        told.append(Figure(f'sparse search: scipy.sparse, {name}', peer / ours))
    figures.tell(options, told)


if __name__ == '__main__':
    main()

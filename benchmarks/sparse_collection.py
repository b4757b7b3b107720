"""The learned sparse ranking of a collection: opening, a search, and opening the next generation.

Each document is one passage of 150 random terms of BERT's vocabulary, as `epic.py` draws them; a
query has 30. Encoders cost nothing. Times are processor times, on one core.

    OMP_NUM_THREADS=1 python benchmarks/sparse_collection.py [--passages 20000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import epic
import numpy as np
import torch
from collection import StandIn
from sparse import DIFFERENT, term_settings

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding
from pyserini_repbert.extensions.learned_sparse import EXTENSION
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.term_vectors import TermVector, TermVectors
from pyserini_repbert.systems.encoders import document_encoder

(TERMS,) = EXTENSION.representations
QUERIES = 60


class RandomTerms:
    """An encoder of drawn term weights."""

    name = term_settings().encoder
    weights_sha256 = term_settings().weights_sha256
    config_sha256 = tokenizer_sha256 = None
    variant = term_settings().variant
    vocabulary = epic.VOCABULARY
    vocabulary_sha256 = term_settings().vocabulary_sha256

    def __init__(self, terms: int) -> None:
        self._random = np.random.default_rng(0)
        self._vectors = epic.random_vectors(self._random, DIFFERENT, terms)

    def encoding(self, **_: Any) -> BundleEncoding[TermWeightsSettings]:
        """How it fills a bundle."""
        return BundleEncoding(term_settings(), TermWeightsShardWriter, self._encode, DIFFERENT)

    def _encode(self, passages: Sequence[Passage]) -> TermVectors:
        rows = self._random.integers(0, DIFFERENT, len(passages)).tolist()
        return TermVectors.of([self._vectors[row] for row in rows])

    def query(self, n_terms: int) -> TermVector:
        """A query of terms of one passage."""
        terms = self._vectors[int(self._random.integers(DIFFERENT))].terms
        chosen = np.sort(self._random.choice(terms, n_terms, replace=False))
        return TermVector(chosen, self._random.random(n_terms, dtype=np.float32))


def processor_seconds(work: Callable[[], Any]) -> float:
    """How long something takes the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--passages', type=int, default=20_000)
    parser.add_argument('--terms', type=int, default=150)
    parser.add_argument('--query-terms', type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    learned = RandomTerms(options.terms)
    dense = StandIn(document_encoder('minilm'))
    documents = [(str(number), f'document {number}') for number in range(options.passages)]
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / 'mine'
        with Collection.open(folder, dense, sparse=learned) as collection:
            collection.sync(documents)
            size = sum(path.stat().st_size for path in folder.rglob('shards/*/*'))
            collection.refresh()
            _report(collection, learned, options, size)


def _report(
    collection: Collection, learned: RandomTerms, options: argparse.Namespace, size: int
) -> None:
    """Print what opening and searching take."""
    from pyserini_repbert.collection.passage_vectors import PassageVectors
    from pyserini_repbert.collection.representation_search import RepresentationSearcher

    def open_searcher() -> RepresentationSearcher:
        generation = collection.generation
        return RepresentationSearcher(generation, TERMS, PassageVectors(generation), learned)

    opening = processor_seconds(open_searcher)
    searcher = open_searcher()
    queries = [learned.query(options.query_terms) for _ in range(QUERIES)]
    searcher.of_query(queries[0], 10)
    searching = processor_seconds(lambda: [searcher.of_query(one, 1000) for one in queries])
    collection.add([('new', 'one more document')])
    again = processor_seconds(open_searcher)
    print(f'shards of {options.passages:,} passages of {options.terms} terms: {size / 1e6:.0f} MB')
    print(f'opening: {opening:.2f} s; the next generation: {again:.2f} s')
    print(f'{1000 * searching / QUERIES:.2f} ms a query of {options.query_terms} terms, 1000 hits')


if __name__ == '__main__':
    main()

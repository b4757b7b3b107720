"""Searching a collection beside a frozen bundle of the same passages; dead rows; filters.

    python benchmarks/collection_search.py [--passages 100000]

Documents are one passage each. Their vectors are random: what is measured is search alone, without
encoding a query. A filter's documents are known, as after its first search.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import figures
import numpy as np
from collection import StandIn
from encoding import texts_of_msmarco_lengths
from figures import Figure

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.ranking import Query
from pyserini_repbert.search.dense import VectorSearcher, open_dense_index
from pyserini_repbert.systems.encoders import document_encoder

_ROUNDS = 7
_HITS = 10
_MANY = 200
_DEAD = 0.05


class QueryStandIn(StandIn):
    """The encoder of queries: a vector for each text."""

    def encode(self, query: str) -> Any:
        """A query's vector."""
        return self.embed([query])[0]

    def encode_batch(self, queries: Any) -> Any:
        """The queries' vectors."""
        return self.embed(queries)


def fastest(*works: Callable[[], object]) -> list[float]:
    """The seconds of each work: the fastest of several rounds, in which they take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(_ROUNDS):
        for number, work in enumerate(works):
            start = time.perf_counter()
            work()
            times[number].append(time.perf_counter() - start)
    return [min(of_work) for of_work in times]


def documents(count: int) -> list[dict[str, Any]]:
    """Documents with a number that filters ask for."""
    texts = texts_of_msmarco_lengths(count)
    return [
        {'id': f'd{number}', 'text': text, 'part': number % 100}
        for number, text in enumerate(texts)
    ]


def measure(count: int, work: Path) -> list[Figure]:
    """Build both indexes, and compare their searches."""
    encoder = QueryStandIn(document_encoder('minilm'))
    given = documents(count)
    encode_corpus(given, encoder, work / 'frozen')
    frozen = VectorSearcher(open_dense_index(work / 'frozen'), encoder)
    collection = Collection.open(work / 'mine', encoder)
    collection.sync(given)
    random = np.random.default_rng(1)
    vectors = random.standard_normal((_MANY, encoder.dimension), np.float32)
    texts = [' '.join(text.split()[:4]) for text in texts_of_msmarco_lengths(50)]
    topics = [Query(str(number), text) for number, text in enumerate(texts)]

    def dense_of(searcher: Any) -> list[Callable[[], object]]:
        return [
            lambda: [searcher.of_vectors(vectors[row : row + 1], _HITS) for row in range(10)],
            lambda: searcher.of_vectors(vectors, _HITS),
        ]

    def searcher_of(text: str | None = None, ranking: str = 'dense') -> Any:
        searcher = collection.searcher(rankings=[ranking], query_encoder=encoder)
        return searcher.within(DocumentFilter(text)).parts[0]

    found = []
    whole = searcher_of()
    for name, one, other in zip(
        ('one query', f'{_MANY} queries'), dense_of(frozen), dense_of(whole), strict=True
    ):
        before, after = fastest(one, other)
        ratio = after / before
        found.append(
            Figure(f'collection against frozen, {name}', ratio, 'x', goal=1.1, at_most=True)
        )
    few = searcher_of('part:7')
    everything = searcher_of('part:*')
    without, within, open_filter = fastest(*(dense_of(one)[0] for one in (whole, few, everything)))
    found.append(Figure('a filter of 1%, dense, one query: faster', without / within, 'x', goal=3))
    found.append(
        Figure(
            'a filter of all, dense, one query', open_filter / without, 'x', goal=1.1, at_most=True
        )
    )
    words, few_words, all_words = (searcher_of(text, 'bm25') for text in (None, 'part:7', 'part:*'))
    bm25 = fastest(
        *(
            lambda searcher=searcher: searcher.rank(topics, None, _HITS)
            for searcher in (words, few_words, all_words)
        )
    )
    found.append(Figure('a filter of 1%, BM25', bm25[1] / bm25[0], 'x', goal=2, at_most=True))
    found.append(Figure('a filter of all, BM25', bm25[2] / bm25[0], 'x', goal=2, at_most=True))

    dead = [f'd{number}' for number in range(0, count, round(1 / _DEAD))]
    collection.delete(dead)
    lived = searcher_of()
    for name, one, other in zip(
        ('one query', f'{_MANY} queries'), dense_of(frozen), dense_of(lived), strict=True
    ):
        before, after = fastest(one, other)
        ratio = after / before
        found.append(Figure(f'with 5% of rows dead, {name}', ratio, 'x', goal=1.15, at_most=True))
    collection.close()
    return found


def main() -> None:
    """Print the figures, each beside its goal."""
    options = figures.parser(__doc__, passages=100_000).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures.tell(options, measure(options.passages, Path(folder)))


if __name__ == '__main__':
    main()

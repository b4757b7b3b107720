"""Documents of words that are drawn, and a search that misses none, beside exact search."""

import numpy as np

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate import AnnSettings

# All vectors are candidates: nothing is missed.
COMPLETE = AnnSettings(recall=1.0, hits=10_000)


def draw_documents(words, count, seed=0, first=0):
    """Documents 'd' and a number from `first` on; their texts have 3 to 13 of the words."""
    random = np.random.default_rng(seed)
    documents = []
    for number in range(first, first + count):
        text = ' '.join(random.choice(words, random.integers(3, 14)))
        documents.append({'id': f'd{number}', 'text': text, 'year': number % 10})
    return documents


def hits_of(searcher, queries, k=20):
    """The docids and scores of each query's hits."""
    ranked = []
    for query in queries:
        ranked.append([(hit.docid, hit.score) for hit in searcher.search(query, k)])
    return ranked


def assert_same_within_filters(found, exact, queries):
    """Compare the hits of two searches within filters that the documents' fields have."""
    for text in ('year:[0 TO 6]', 'year:3', 'year:99'):
        wanted = DocumentFilter(text)
        try:
            expected = hits_of(exact.within(wanted), queries)
        except InputError:
            continue
        assert hits_of(found.within(wanted), queries) == expected

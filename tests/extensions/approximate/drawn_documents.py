"""Documents of words that are drawn, and settings of a search that misses none."""

import numpy as np

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

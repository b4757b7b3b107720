"""Bundles of vectors that a test chooses."""

from collections.abc import Sequence

import numpy as np

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import encode_corpus

DIMENSION = 16


def clustered(count: int, seed: int = 5, same: Sequence[int] = ()) -> np.ndarray:
    """float32 (count, 16): twenty Gaussian clusters; the rows `same` are as the first of them."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, DIMENSION))
    found = (
        centres[random.integers(20, size=count)] + 0.5 * random.standard_normal((count, DIMENSION))
    ).astype('f4')
    found[same[1:]] = found[same[:1]]
    return found


class RowEncoder:
    """A text is the number of a row of a matrix."""

    name = 'rows'
    weights_sha256 = '0' * 64
    dimension = DIMENSION
    limit = 16
    precision = 'float32'
    config_sha256 = tokenizer_sha256 = None
    pooling = 'mean'

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors

    def embed(self, texts, **_):
        return self.vectors[[int(text) for text in texts]]

    def encode(self, text):
        return self.vectors[int(text)]


def write_bundle(folder, vectors, **settings):
    """A bundle of these vectors; the docid of row 7 is 'd7'."""
    passages = [Passage(f'd{row}', str(row)) for row in range(len(vectors))]
    encode_corpus(passages, RowEncoder(vectors), folder, **{'shard_size': 400} | settings)
    return folder

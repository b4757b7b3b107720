"""A fixed sample of an index's vectors, which tells what a query scores with anything.

A cosine's zero is not "nothing": some encoders give .75 to any two texts. The mean over a sample is
what a passage has that was not chosen for the query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Vectors of a sample: the mean of their products with a query is within a sixteenth of their
# deviation.
SAMPLE = 256


def sample_positions(n_rows: int) -> NDArray[np.int64]:
    """At most `SAMPLE` of so many rows, at equal distances, int64 (m,)."""
    return np.linspace(0, max(n_rows - 1, 0), min(SAMPLE, n_rows)).astype(np.int64)


def mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of vectors, float32 (d,); 0 of none.

    Its product with a query's vector is the mean of their products.
    """
    if not len(vectors):
        return np.zeros(vectors.shape[1], np.float32)
    mean: NDArray[np.float32] = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean

"""A fixed sample of an index's vectors, which tells what a query scores with anything.

A cosine's zero is not "nothing": some encoders give .75 to any two texts. The mean over a sample is
what a passage has that was not chosen for the query.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.ranking import Background

# Vectors of a sample: the mean of their products with a query is within a sixteenth of their
# deviation.
SAMPLE = 256
# Scores have a longer tail than a normal distribution (regressions/studies/small_folders.py).
_TAIL = 1.25


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


def background_of(
    scores: NDArray[np.float32], n_rows: int, mean: float | None = None
) -> Background:
    """The background of a query, by its scores with a sample.

    The best of n normally distributed scores is about sqrt(2 ln n) deviations above their mean.

    Parameters
    ----------
    scores : with the sample, (m,)
    n_rows : how many vectors are searched
    mean : of the scores, if it is known; None: it is computed
    """
    if not len(scores):
        return Background(0.0)
    if mean is None:
        mean = float(scores.mean(dtype=np.float64))
    deviation = float(scores.std(dtype=np.float64))
    return Background(mean, _TAIL * sqrt(2 * log(max(n_rows, 1))) * deviation)

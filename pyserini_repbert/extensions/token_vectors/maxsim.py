"""The score of late interaction over stored token vectors (ColBERT section 3.3, equation 3).

Stored vectors are converted to float32 some at a time, so that they stay in the CPU's cache until
they are multiplied. A maximum over tokens runs along the contiguous axis of the products.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors

# Token vectors that are converted together: benchmarks/late_interaction.py.
_TOKENS = 4096


def maxsim_scores(
    query: NDArray[np.float32],
    vectors: StoredVectors,
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The sum over the query's tokens of the best match in each passage, float32 (n,).

    Parameters
    ----------
    query : the vectors of its tokens, (q, d)
    vectors : the vectors of all tokens of a shard, float16 or int8 (total, d), mapped
    begins : where each passage begins among them, (n,)
    lengths : how many tokens each passage has, (n,); a passage without tokens scores 0
    """
    scores = np.zeros(len(begins), np.float32)
    kept = np.flatnonzero(lengths)
    asked = torch.from_numpy(query)
    scales = vectors.scales if isinstance(vectors, Int8Vectors) else None
    stored = torch.from_numpy(vectors.numbers if isinstance(vectors, Int8Vectors) else vectors)
    most = max(_TOKENS, int(lengths.max(initial=0)))
    converted = torch.empty((most, query.shape[1]))
    for group in _groups(lengths[kept]):
        passages = kept[group]
        firsts = np.cumsum(lengths[passages]) - lengths[passages]
        n_tokens = 0
        spans = list(_spans(begins[passages], lengths[passages]))
        for begin, end in spans:
            converted[n_tokens : n_tokens + end - begin].copy_(stored[begin:end])
            n_tokens += end - begin
        products = (asked @ converted[:n_tokens].T).numpy()
        if scales is not None:
            # A query has fewer tokens than a vector has values.
            products *= np.concatenate([scales[begin:end] for begin, end in spans])
        matches = np.maximum.reduceat(products, firsts, axis=1)
        scores[passages] = matches.sum(axis=0, dtype=np.float64)
    return scores


def _groups(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Passages in order, in groups of at most `_TOKENS` tokens, or of a single passage."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first] - lengths[first])
        last = int(np.searchsorted(ends, before + _TOKENS, side='right'))
        last = max(last, first + 1)
        yield slice(first, last)
        first = last


def _spans(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where tokens of passages begin and end; passages that follow each other are one span."""
    ends = begins + lengths
    breaks = np.flatnonzero(begins[1:] != ends[:-1]) + 1
    first_rows = np.concatenate([[0], breaks])
    last_rows = np.concatenate([breaks, [len(begins)]]) - 1
    yield from zip(begins[first_rows].tolist(), ends[last_rows].tolist(), strict=True)

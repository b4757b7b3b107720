"""The bundle of term weights, for writing: vectors by blocks of the vocabulary, quantised.

`index/term_weights.py` describes the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.records import (
    BLOCKS,
    OFFSETS,
    SCALES,
    TERMS,
    WEIGHTS,
    TermWeightsSettings,
)
from pyserini_repbert.index.shard_writer import ShardWriter
from pyserini_repbert.index.term_weights import BLOCK_BITS, BLOCK_SIZE, count_dtype, n_blocks
from pyserini_repbert.models.term_vectors import TermVectors

QUANTISED_MAX = 255  # of uint8 weights


class TermWeightsShardWriter(ShardWriter[TermWeightsSettings, TermVectors]):
    """A context in which passages and their vectors are appended to a shard of a bundle.

    Layout 'all' takes vectors that hold each term of the vocabulary.
    """

    def begin(self) -> None:
        settings = self._settings
        has_blocks = settings.layout == 'blocks'
        row_shape = () if has_blocks else (settings.vocabulary,)
        self._weights = self.stream(WEIGHTS, settings.weights, row_shape)
        if settings.weights == 'uint8':
            self._scales = self.stream(SCALES, np.float32, (2,))
        if has_blocks:
            self._terms = self.stream(TERMS, np.uint8)
            counts_shape = (n_blocks(settings.vocabulary) + 1,)
            self._blocks = self.stream(BLOCKS, count_dtype(settings.vocabulary), counts_shape)
            self._offsets = self.stream(OFFSETS, np.int64)
            self._offsets.append([0])

    def write(self, passages: Sequence[Passage], vectors: TermVectors) -> None:
        if self._settings.layout == 'blocks':
            self._offsets.append(vectors.offsets[1:] + self._terms.count)
            self._terms.append(vectors.terms & (BLOCK_SIZE - 1))
            self._blocks.append(_counts_below(vectors, n_blocks(self._settings.vocabulary)))
        if self._settings.weights == 'uint8':
            _check_finite(vectors.weights, vectors, passages, 'float32')
            stored: NDArray[Any]
            stored, scales = quantised(vectors)
            self._scales.append(scales)
        else:
            dtype = self._settings.weights
            with np.errstate(over='ignore'):
                stored = vectors.weights.astype(dtype)
            _check_finite(stored, vectors, passages, dtype)
        self._weights.append(stored)


def quantised(vectors: TermVectors) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The weights as uint8 (total,), and each vector's least weight and step, float32 (n, 2).

    A weight is least + step x level. Its error is at most half a step; a step is 1/255 of the range
    of the passage's weights.
    """
    counts = np.diff(vectors.offsets)
    scales = np.zeros((len(vectors), 2), dtype=np.float32)
    some = counts > 0
    starts = vectors.offsets[:-1][some]
    lowest = np.minimum.reduceat(vectors.weights, starts)
    highest = np.maximum.reduceat(vectors.weights, starts)
    scales[some, 0] = lowest
    scales[some, 1] = (highest - lowest) / QUANTISED_MAX
    least = np.repeat(scales[:, 0], counts)
    step = np.repeat(scales[:, 1], counts)
    levels = np.rint((vectors.weights - least) / np.where(step > 0, step, 1))
    return np.minimum(levels, QUANTISED_MAX).astype(np.uint8), scales


def _counts_below(vectors: TermVectors, blocks: int) -> NDArray[np.int64]:
    """(n, blocks + 1): how many terms of a vector are below each block, and how many it has."""
    rows = np.repeat(np.arange(len(vectors)), np.diff(vectors.offsets))
    cells = rows * blocks + (vectors.terms >> BLOCK_BITS)
    inside = np.bincount(cells, minlength=len(vectors) * blocks)
    counts = np.zeros((len(vectors), blocks + 1), dtype=np.int64)
    np.cumsum(inside.reshape(len(vectors), blocks), axis=1, out=counts[:, 1:])
    return counts


def _check_finite(
    stored: NDArray[Any], vectors: TermVectors, passages: Sequence[Passage], dtype: str
) -> None:
    """Raises DamagedFileError for a weight that is not finite, naming its passage."""
    is_finite = np.isfinite(stored)
    if is_finite.all():
        return
    first = np.flatnonzero(~is_finite)[0]
    row = int(np.searchsorted(vectors.offsets, first, side='right')) - 1
    raise DamagedFileError(
        f"a weight of passage '{passages[row].docid}' is not finite in {dtype}: check the "
        'checkpoint, or compute in float32'
    )

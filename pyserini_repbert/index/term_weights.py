"""The bundle of term weights, for reading: sparse vectors in memory-mapped shards, and scores.

EPIC and learned sparse models fill it; on disk, its kind is called 'epic'.

Layout 'blocks': the vocabulary is cut into blocks of 256 terms. `terms.npy` holds the low byte of
each passage's terms, ascending; `offsets.npy` says where each passage begins; a passage's row of
`blocks.npy` counts its terms below each block and, last, all of them; `weights.npy` holds the
weights in the order of the terms. So a term takes one byte, and a query term is found among the few
bytes of one block. Layout 'all' (nothing pruned): `weights.npy` has a row over the whole vocabulary
for each passage. Weights are float32, float16, or uint8 with two float32 values a passage in
`scales.npy`: the least weight and the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.index.arrays import check_finite, check_offsets, check_terms, impossible
from pyserini_repbert.index.bundle import Bundle, Shard, mapped
from pyserini_repbert.index.records import (
    BLOCKS,
    OFFSETS,
    SCALES,
    TERMS,
    WEIGHTS,
    ShardRecord,
    TermWeightsSettings,
)
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

BLOCK_BITS = 8
BLOCK_SIZE = 1 << BLOCK_BITS
ROWS = 8192  # passages decoded together

Array = NDArray[Any]


def n_blocks(vocabulary: int) -> int:
    """How many blocks of 256 terms a vocabulary has."""
    return -(-vocabulary // BLOCK_SIZE)


def count_dtype(vocabulary: int) -> type[np.uint16] | type[np.uint32]:
    """The integer type of `blocks.npy`."""
    return np.uint16 if vocabulary <= np.iinfo(np.uint16).max else np.uint32


class TermWeightsShard(Shard):
    """One shard: the arrays that the module describes, flat and memory-mapped."""

    def __init__(self, folder: Path, record: ShardRecord, settings: TermWeightsSettings) -> None:
        super().__init__(folder, record, settings)
        count = record.count
        vocabulary = settings.vocabulary
        self._vocabulary = vocabulary
        self._vocabulary_rows = settings.layout == 'all'
        self.terms: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.blocks: Array = np.empty(0, count_dtype(vocabulary))
        if settings.layout == 'blocks':
            self.offsets: NDArray[np.int64] = mapped(folder / OFFSETS, np.int64, (count + 1,))
            total = int(self.offsets[-1])
            check_offsets(self.offsets, total, folder / OFFSETS)
            self.terms = mapped(folder / TERMS, np.uint8, (total,))
            table = (count, n_blocks(vocabulary) + 1)
            self.blocks = mapped(folder / BLOCKS, count_dtype(vocabulary), table).reshape(-1)
            self.weights: Array = mapped(folder / WEIGHTS, settings.weights, (total,))
        else:
            shape = (count, vocabulary)
            self.weights = mapped(folder / WEIGHTS, settings.weights, shape).reshape(-1)
            # Made last: the file has to have so many rows.
            self.offsets = np.arange(0, (count + 1) * vocabulary, vocabulary, dtype=np.int64)
        self.scales: NDArray[np.float32] = np.empty((0, 2), np.float32)
        if settings.weights == 'uint8':
            self.scales = mapped(folder / SCALES, np.float32, (count, 2))
            check_finite(self.scales, folder / SCALES)

    def weights_of(self, rows: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """The term weights in rows of this shard, float32 (m, n).

        They are 0 where a passage lacks a term. Terms are the first axis: an operation with one
        term then runs over contiguous rows. Raises DamagedFileError as `vectors`.
        """
        weights = self._weights_of(rows, terms)
        if not np.isfinite(weights).all():
            raise impossible(self.folder / WEIGHTS, 'a weight is not finite')
        return weights

    def _weights_of(self, rows: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """What `weights_of` returns; a damaged file may give values that are not finite."""
        weights = np.zeros((len(terms), len(rows)), dtype=np.float32)
        if not len(self.weights):
            return weights
        if self._vocabulary_rows:
            weights[:] = self.weights.take(terms[:, None] + rows * self._vocabulary)
            if len(self.scales):
                least, step = self.scales[rows].T
                weights = weights * step + least
            return weights
        positions, exists = self._find(rows, terms)
        here = np.flatnonzero(exists)
        stored = self.weights.take(positions.reshape(-1)[here]).astype(np.float32)
        if len(self.scales):
            least, step = self.scales[rows[here % len(rows)]].T
            stored = stored * step + least
        weights.reshape(-1)[here] = stored
        return weights

    def _find(
        self, rows: NDArray[np.int64], terms: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Positions of the term weights in rows, int64 (m, n), and whether they exist.

        The binary searches of all terms and rows go in step.
        """
        cells = (terms >> BLOCK_BITS)[:, None] + rows * (n_blocks(self._vocabulary) + 1)
        begin = self.blocks.take(cells)
        cells += 1
        counts = self.blocks.take(cells)
        row_starts = self.offsets.take(rows)
        row_counts = self.offsets.take(rows + 1) - row_starts
        if (begin > counts).any() or (counts > row_counts).any():
            raise self._misplaced_terms()
        counts -= begin
        starts = row_starts + begin
        wanted = (terms & (BLOCK_SIZE - 1)).astype(np.uint8)[:, None]
        # How many of a block's terms are known to be lower.
        before = np.zeros(counts.shape, dtype=np.uint16)
        step = 1 << int(counts.max()).bit_length()
        while step > 1:
            step >>= 1
            probe = before + np.uint16(step - 1)
            # Values beyond the block's end are not used.
            lower = self.terms.take(starts + probe, mode='wrap') < wanted
            lower &= probe < counts
            before += lower * np.uint16(step)
        positions: NDArray[np.int64] = starts + before
        exists: NDArray[np.bool_] = self.terms.take(positions, mode='wrap') == wanted
        exists &= before < counts
        return positions, exists

    def vectors(self, first: int, end: int) -> TermVectors:
        """The vectors of the rows from `first` to before `end`.

        Raises DamagedFileError for terms that the vocabulary does not have, and for weights that
        are not finite.
        """
        offsets = self.offsets[first : end + 1]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        counts = np.diff(offsets)
        weights: NDArray[np.float32] = self.weights[inside].astype(np.float32)
        if len(self.scales):
            scales = self.scales[first:end]
            weights = weights * np.repeat(scales[:, 1], counts) + np.repeat(scales[:, 0], counts)
        if not np.isfinite(weights).all():
            raise impossible(self.folder / WEIGHTS, 'a weight is not finite')
        if self._vocabulary_rows:
            terms: Array = np.tile(np.arange(self._vocabulary), end - first)
        else:
            terms = self._terms(first, end)
        return TermVectors(offsets - offsets[0], terms, weights)

    def _terms(self, first: int, end: int) -> NDArray[np.int64]:
        """The terms of the rows from `first` to before `end`, of layout 'blocks'."""
        offsets = self.offsets[first : end + 1]
        width = n_blocks(self._vocabulary)
        table = self.blocks.reshape(-1, width + 1)[first:end].astype(np.int64)
        block_counts = np.diff(table, axis=1)
        is_whole = (table[:, 0] == 0).all() and (table[:, -1] == np.diff(offsets)).all()
        if not is_whole or (block_counts < 0).any():
            raise self._misplaced_terms()
        high = np.tile(np.arange(width) << BLOCK_BITS, end - first)
        low = self.terms[int(offsets[0]) : int(offsets[-1])]
        terms: Array = np.repeat(high, block_counts.reshape(-1)) + low
        if terms.max(initial=0) >= self._vocabulary:
            raise impossible(
                self.folder / TERMS, f'it has term {terms.max()} of {self._vocabulary}'
            )
        return terms

    def check_values(self) -> None:
        """Read all vectors. Raises DamagedFileError for those that no model gives."""
        count = len(self.docids)
        for first in range(0, count, ROWS):
            vectors = self.vectors(first, min(first + ROWS, count))
            check_terms(vectors.terms, vectors.offsets, self._vocabulary, self.folder / TERMS)

    def _misplaced_terms(self) -> DamagedFileError:
        return impossible(self.folder / BLOCKS, 'its counts do not rise to the number of rows')


class TermWeightsBundle(Bundle[TermWeightsSettings, TermWeightsShard]):
    """An index folder of term weights; parameters and errors are as in `DenseBundle`."""

    settings_kind = TermWeightsSettings
    shard_kind = TermWeightsShard

    def bytes_per_passage(self) -> float:
        """Mean bytes on disk of a passage: vectors, docid and a share of the manifest.

        Its text does not count.
        """
        size = 0
        for path in self.folder.rglob('*'):
            if path.is_file() and not path.name.startswith('texts.'):
                size += path.stat().st_size
        return size / max(len(self), 1)

    def vector(self, row: int) -> TermVector:
        """The vector of a row, numbered across all shards."""
        return next(self.rows_from(row, 1))

    def vectors(self, size: int = ROWS) -> Iterator[tuple[int, TermVectors]]:
        """(first row, vectors) of at most `size` rows each, in order."""
        for start, shard in zip(self._docids.starts.tolist(), self.shards, strict=False):
            count = len(shard.docids)
            for first in range(0, count, size):
                end = min(first + size, count)
                yield start + first, shard.vectors(first, end)

    def rows_from(self, first: int, count: int) -> Iterator[TermVector]:
        """The vectors of `count` rows from `first` on, numbered across all shards."""
        rows = np.arange(first, min(first + count, len(self)))
        for selection in self._docids.by_column(rows):
            shard = self.shards[selection.column]
            yield from shard.vectors(int(selection.rows[0]), int(selection.rows[-1]) + 1)

    def score(self, rows: NDArray[np.int64], query: TermVector) -> NDArray[np.float32]:
        """Inner products of a query and the passages of `rows` (EPIC eq. 5), float32 (n,)."""
        return self.weights_of(rows, query.terms) @ query.weights  # type: ignore[no-any-return]

    def weights_of(self, rows: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.float32]:
        """The term weights, int64 (m,), in rows, int64 (n,): float32 (n, m).

        They are 0 where a passage lacks a term. Rows are numbered across all shards, and may come
        in any order.
        """
        unknown = terms[(terms < 0) | (terms >= self.settings.vocabulary)]
        if len(unknown):
            raise MismatchError(
                f'term {int(unknown[0])} was asked for, index {self.folder} has a vocabulary of '
                f'{self.settings.vocabulary}: encode queries with its own model '
                f"('{self.settings.encoder}')"
            )
        if not len(rows) or not len(terms):
            return np.zeros((len(rows), len(terms)), dtype=np.float32)
        if len(self.shards) == 1:
            return self.shards[0].weights_of(rows, terms).T
        weights = np.empty((len(rows), len(terms)), dtype=np.float32)
        for selection in self._docids.by_column(rows):
            shard = self.shards[selection.column]
            weights[selection.mask] = shard.weights_of(selection.rows, terms).T
        return weights

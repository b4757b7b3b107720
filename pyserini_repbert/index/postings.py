"""The postings of a bundle of term weights: for each term, the passages that have it.

They are made in memory from the passages' vectors, and take 6 bytes for each stored weight. Blocks
of rows have separate postings, so that a row is a number of two bytes, and the scores of a
block stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

# Rows of a block: so many fit into two bytes.
BLOCK_ROWS = 1 << 16
# About so many weights are sorted at a time.
_BLOCK_WEIGHTS = 1 << 23


@dataclass(frozen=True, eq=False, slots=True)
class PostingsBlock:
    """The postings of a block of rows, term by term, terms ascending.

    Attributes
    ----------
    first_row : of the block, numbered across all shards of the bundle
    n_rows : how many rows it has
    starts : int64 (|V| + 1,), where each term's postings begin, and where the last ones end
    rows : uint16 (total,), counted from the first row; ascending within a term
    weights : float32 (total,)
    """

    first_row: int
    n_rows: int
    starts: NDArray[np.int64]
    rows: NDArray[np.uint16]
    weights: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: TermVectors, first_row: int, vocabulary: int) -> PostingsBlock:
        """The postings of vectors of at most `BLOCK_ROWS` rows."""
        n_rows = len(vectors)
        rows = np.repeat(np.arange(n_rows, dtype=np.uint16), np.diff(vectors.offsets))
        terms = vectors.terms
        if vocabulary <= BLOCK_ROWS:
            # NumPy sorts integers of two bytes by radix.
            terms = terms.astype(np.uint16)
        order = np.argsort(terms, kind='stable')
        counts = np.bincount(vectors.terms, minlength=vocabulary)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return cls(first_row, n_rows, starts, rows[order], vectors.weights[order])

    def score(self, query: TermVector) -> NDArray[np.float64]:
        """Inner products of a query with the rows, float64 (n_rows,)."""
        rows = [np.empty(0, np.uint16)]
        products = [np.empty(0, np.float64)]
        begin = self.starts[query.terms].tolist()
        end = self.starts[query.terms + 1].tolist()
        for start, stop, weight in zip(begin, end, query.weights.astype(np.float64), strict=True):
            rows.append(self.rows[start:stop])
            products.append(self.weights[start:stop] * weight)
        scores = np.bincount(
            np.concatenate(rows), weights=np.concatenate(products), minlength=self.n_rows
        )
        return scores.astype(np.float64, copy=False)


def rows_together(n_rows: int, n_weights: int) -> int:
    """How many rows a block has, where `n_rows` rows have `n_weights` weights."""
    size = _BLOCK_WEIGHTS * n_rows // max(n_weights, 1)
    return max(1024, min(BLOCK_ROWS, size))


class Postings:
    """The postings of a whole bundle, in blocks of rows.

    Parameters
    ----------
    bundle : whose vectors are read; of layout 'blocks'

    Raises InputError for a bundle of layout 'all', which has each term in each passage.
    """

    def __init__(self, bundle: TermWeightsBundle) -> None:
        if bundle.settings.layout == 'all':
            raise InputError(
                f'index {bundle.folder} keeps all weights of each passage, too many to search: '
                'make a smaller one with `index epic-prune`, or rerank with it'
            )
        size = rows_together(len(bundle), sum(len(shard.weights) for shard in bundle.shards))
        vocabulary = bundle.settings.vocabulary
        self.blocks: list[PostingsBlock] = []
        for first_row, vectors in bundle.vectors(size):
            self.blocks.append(PostingsBlock.of(vectors, first_row, vocabulary))

    def __iter__(self) -> Iterator[PostingsBlock]:
        return iter(self.blocks)

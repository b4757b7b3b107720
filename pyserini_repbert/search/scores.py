"""The score of a query and a row of an index, and the best rows. Nothing here needs PyTorch.

A score is the float32 inner product of the pair (RepBERT eq. 3). It does not depend on other rows
or queries, nor on the number of threads. FAISS computes it. For a single question, NumPy does,
which rounds differently: importing FAISS takes longer than such a search.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors
from pyserini_repbert.models.threads import faiss_threads

# More than any product or summand that a processor may take for zero.
TINY = 2.0**-125
# Sums below it are finite however they are rounded.
OVERFLOWS = 2.0**120
# Pairs that one thread scores in about the time that others take to wake.
_FEW = 2048
# Numbers that NumPy multiplies in less time than an import of FAISS takes.
_MOST_IN_NUMPY = 2**22
# Pairs whose rows in float16 or int8 are converted to float32 together.
_CONVERTED = 16384


Number = TypeVar('Number', bound=Any)


def product_errors(sums: Number, largest: float, dimension: int) -> Number:
    """How far products of queries and vectors may be from scores, in any order of summation.

    A sum of d products in float32 errs by at most d 2^-24 times the sum of all |q_i x_i|.

    Parameters
    ----------
    sums : of the absolute values of each query, (n queries,)
    largest : absolute value of the vectors
    dimension : d
    """
    # No less than the sum of all |q_i x_i|.
    totals = sums * largest
    rounding = (dimension + 8) * 2.0**-23 * totals
    underflow = TINY * (sums + dimension * largest + dimension)
    errors: Number = rounding + underflow
    return errors


class NotFiniteError(DamagedFileError):
    """An index has a vector that is not finite, or that gives a score that is not finite.

    `index` is the index, as a message says it.
    """

    def __init__(self, index: str = 'the index') -> None:
        super().__init__(
            f'{index} has a vector that is not finite, or gives a score that is not: `index check` '
            'names it; restore the index from a copy, or build it again'
        )


class TopRows(NamedTuple):
    """One query's best rows: scores, float32 (m,), that never increase, and rows, int64 (m,).

    All rows that tie with the last of the k best are included, so m can exceed k.
    """

    scores: NDArray[np.float32]
    rows: NDArray[np.int64]


class VectorSearch(Protocol):
    """A search of a whole index by exact inner products, on any device or machine."""

    def __call__(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k rows of the greatest scores for each query, and all that tie with the last.

        `queries` are float32 (n, d).
        """


def merged(parts: Sequence[TopRows], starts: Sequence[int], k: int) -> TopRows:
    """One query's k best rows of an index, and all that tie with the last, from the rows of its
    parts.

    Parameters
    ----------
    parts : the best rows of each part
    starts : the first row of each part in the index, added to the part's rows
    k : how many
    """
    scores = np.concatenate([part.scores for part in parts])
    rows = np.concatenate([part.rows + start for part, start in zip(parts, starts, strict=True)])
    return top_rows(scores, rows, k)


def top_rows(scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> TopRows:
    """The k best of some rows, and all that tie with the last; ties in the order given."""
    if len(scores) > k:
        position = len(scores) - k
        kth = np.partition(scores, position)[position]
        kept = scores >= kth
        scores = scores[kept]
        rows = rows[kept]
    order = np.argsort(-scores, kind='stable')
    return TopRows(scores[order], rows[order])


def pair_scores(
    queries: NDArray[np.float32],
    vectors: StoredVectors,
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The score of each pair: its inner product (RepBERT eq. 3), float32 (m,).

    Parameters
    ----------
    queries : float32 (n queries, d)
    vectors : of an index, (n, d)
    rows : the row of `vectors` of each pair, int64 (m,)
    owners : the row of `queries` of each pair, int64 (m,)
    """
    is_small = len(rows) * queries.shape[1] <= _MOST_IN_NUMPY
    if is_small and not {'faiss', 'torch'} & sys.modules.keys():
        return _scores_in_numpy(queries[owners], vectors[rows])
    import faiss

    # FAISS's annotations lack the functions that SWIG generates.
    engine: Any = faiss
    products = np.empty(len(rows), np.float32)
    if not isinstance(vectors, Int8Vectors) and vectors.dtype == np.float32:
        arrays = [np.ascontiguousarray(array) for array in (queries, owners, vectors, rows)]
        pointers = (engine.swig_ptr(array) for array in (*arrays, products))
        with faiss_threads(1 if len(rows) < _FEW else _usual_threads()):
            engine.pairwise_indexed_inner_product(queries.shape[1], len(rows), *pointers)
        return products
    for first in range(0, len(rows), _CONVERTED):
        part = slice(first, first + _CONVERTED)
        used, used_rows = np.unique(rows[part], return_inverse=True)
        converted = vectors[used].astype(np.float32, copy=False)
        products[part] = pair_scores(queries, converted, used_rows, owners[part])
    return products


def _scores_in_numpy(
    queries: NDArray[np.float32], vectors: NDArray[np.floating[Any]]
) -> NDArray[np.float32]:
    """The inner product of each pair of rows, (m, d) both; summed in double precision."""
    products = np.multiply(queries, vectors, dtype=np.float64)
    scores: NDArray[np.float32] = products.sum(axis=1).astype(np.float32)
    return scores


class VectorShard(Protocol):
    """A part of an index's rows."""

    @property
    def vectors(self) -> StoredVectors:
        """Its vectors, (n, d)."""


def shard_pair_scores(
    queries: NDArray[np.float32],
    shards: Sequence[VectorShard],
    rows: NDArray[np.int64],
    owners: NDArray[np.int64],
) -> NDArray[np.float32]:
    """As in `pair_scores`, with rows that are numbered across shards."""
    scores = np.empty(len(rows), np.float32)
    first = 0
    for shard in shards:
        after = first + len(shard.vectors)
        inside = np.flatnonzero((rows >= first) & (rows < after))
        if len(inside):
            scores[inside] = pair_scores(
                queries, shard.vectors, rows[inside] - first, owners[inside]
            )
        first = after
    return scores


def _usual_threads() -> int:
    """The threads in which PyTorch computes; if it is not imported, FAISS's default: 0."""
    torch = sys.modules.get('torch')
    return 0 if torch is None else int(torch.get_num_threads())

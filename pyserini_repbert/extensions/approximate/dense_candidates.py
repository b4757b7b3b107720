"""Passages by their dense vectors: the best of the candidates, and the recall that they reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.extensions.approximate.index import candidate_rows
from pyserini_repbert.extensions.approximate.kinds import AnnKind, Effort, efforts, training_points
from pyserini_repbert.extensions.approximate.making import (
    SEED,
    AnnSettings,
    SizedVectors,
    drawn_vectors,
)
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import (
    NotFiniteError,
    TopRows,
    VectorShard,
    shard_pair_scores,
    top_rows,
)

# Queries whose candidates are in memory together.
QUERY_GROUP = 256
# How many queries measure recall if none are given.
SAMPLE = 200
# Noise that makes a query of a passage's vector, in standard deviations of each dimension.
_NOISE = 0.5


class ShardedVectors(SizedVectors, Protocol):
    """Vectors in the rows of the shards of a bundle, or of a collection."""

    @property
    def folder(self) -> Path:
        """Where the index is."""

    @property
    def shards(self) -> Sequence[VectorShard]:
        """In the order of their rows."""


def best_of(
    vectors: ShardedVectors, queries: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last.

    Parameters
    ----------
    vectors : of the index
    queries : float32 (n, d)
    rows : the candidates of each query, int64 (n, m), padded with -1
    k : how many

    Raises NotFiniteError if a score is not finite.
    """
    # Sorted, neighbouring rows are read together.
    rows = np.sort(rows, axis=1)
    owners, columns = np.nonzero(rows >= 0)
    candidates = rows[owners, columns]
    scores = shard_pair_scores(queries, vectors.shards, candidates, owners)
    if not np.isfinite(scores).all():
        raise NotFiniteError(f'index {vectors.folder}')
    ends = np.cumsum(np.bincount(owners, minlength=len(queries)))
    tops = []
    start = 0
    for end in ends.tolist():
        tops.append(top_rows(scores[start:end], candidates[start:end], k))
        start = end
    return tops


def allowed_rows(rows: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Candidates, int64 (n, m), with -1 instead of those that are not allowed, bool (rows,)."""
    if allowed is None:
        return rows
    # A -1 does not change, whatever the last row is.
    return np.where((rows >= 0) & allowed[rows], rows, -1)


class DenseRecall:
    """The recall of passages' vectors, one a passage, as a `RecallMeasure`.

    Parameters
    ----------
    vectors : of the passages
    settings : `queries` and `hits` are taken
    live : the rows that can be hits, bool (rows,); None: all
    """

    usual = AnnKind.PQ

    def __init__(
        self,
        vectors: ShardedVectors,
        settings: AnnSettings,
        live: NDArray[np.bool_] | None = None,
    ) -> None:
        self._vectors = vectors
        self._live = live
        n_live = len(vectors) if live is None else int(np.count_nonzero(live))
        self.hits = min(settings.hits, n_live)
        self.sample = settings.sample or 'queries'
        self.queries = settings.queries
        if self.queries is None:
            self.queries = _sample_queries(vectors)
            self.sample = f'passages with noise, seed {SEED}'

    @cached_property
    def _truth(self) -> list[TopRows]:
        return QuickIndex(self._vectors).search(self.queries, self.hits, self._live)

    def efforts(self, kind: AnnKind) -> Iterator[Effort]:
        return efforts(AnnKind(kind), len(self._vectors), self.hits)

    def recall(self, index: Any, kind: AnnKind, effort: Effort) -> float:
        chosen = AnnKind(kind)
        found = candidate_rows(index, chosen, self.queries, effort)
        candidates = allowed_rows(found, self._live)
        tops = best_of(self._vectors, self.queries, candidates, self.hits)
        return mean_recall(self._truth, tops, self.hits)


def _sample_queries(vectors: SizedVectors) -> NDArray[np.float32]:
    """Queries to measure recall on: passages' vectors with noise, float32 (n, d)."""
    random = np.random.default_rng(SEED)
    drawn = drawn_vectors(vectors, min(len(vectors), training_points(AnnKind.PQ, len(vectors))))
    rows = np.sort(random.choice(len(drawn), min(SAMPLE, len(drawn)), replace=False))
    chosen = drawn[rows]
    noise = random.standard_normal(chosen.shape, dtype=np.float32)
    queries: NDArray[np.float32] = chosen + _NOISE * drawn.std(axis=0) * noise
    return queries.astype(np.float32)


def mean_recall(truth: list[TopRows], tops: list[TopRows], hits: int) -> float:
    """The mean share of the `hits` best rows that were found, 0 to 1.

    Rows that tie with the last count as well. `truth` has each query's hits by exact search, `tops`
    the hits to judge.
    """
    shares = [
        np.isin(top.rows[:hits], best.rows).sum() / min(hits, len(best.rows))
        for best, top in zip(truth, tops, strict=True)
    ]
    return float(np.mean(shares))

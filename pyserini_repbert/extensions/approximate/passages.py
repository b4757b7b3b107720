"""Approximate search of a collection's passages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors, shard_blocks
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation
from pyserini_repbert.extensions.approximate.covered import CoveredRows, open_collection_ann
from pyserini_repbert.extensions.approximate.dense_candidates import (
    QUERY_GROUP,
    allowed_rows,
    best_of,
)
from pyserini_repbert.extensions.approximate.form import ANN, CLEARED
from pyserini_repbert.extensions.approximate.ranking_vectors import DenseVectors, RankingVectors
from pyserini_repbert.extensions.approximate.token_vectors import TokenRankingVectors
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.models.threads import faiss_threads
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import TopRows, top_rows

# How much deeper each further search for candidates goes, and how many there are.
_DEEPER = 4
_DEEPER_SEARCHES = 2
# Of a smaller share of rows that count, all are candidates.
_ALL_SHARE = 1 / 16


class _RankingAnn:
    """The approximate index of a ranking of a generation, as an `OpenScan`.

    Parameters
    ----------
    vectors : of the ranking

    Attributes
    ----------
    record : of the index
    index : that finds candidates
    is_covered : the passages that the index has, bool (rows,)

    Raises
    ------
    InputError : there is no approximate index
    DamagedFileError : it is not intact, or of other vectors
    """

    def __init__(self, vectors: RankingVectors) -> None:
        self.index = open_collection_ann(vectors.folder)
        self.record = self.index.record
        self.name = ANN
        self.sha256 = self.record.index_sha256
        self._rows = CoveredRows(vectors.folder, self.record, vectors.shards)
        self.is_covered = self._rows.is_covered

    def computing_in(self, threads: int) -> contextlib.AbstractContextManager[None]:
        """As in `OpenScan`."""
        return faiss_threads(threads)


class _ShardVectors:
    """The vectors of some shards, as `Blocks`."""

    def __init__(self, shards: Sequence[PassageShard]) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._shards)

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """As in `Blocks`."""
        return shard_blocks(self._shards, size)


class PassageAnn(_RankingAnn):
    """Approximate search of a generation's passages by their dense vectors, as a `PassageScan`.

    Parameters
    ----------
    vectors : of the generation
    exact : searches them exactly, where too few candidates are found
    device_name : where vectors of newer shards are multiplied

    Attributes
    ----------
    n_covered : how many live rows the index has
    """

    def __init__(self, vectors: PassageVectors, exact: QuickIndex, device_name: str) -> None:
        super().__init__(DenseVectors(vectors))
        self._vectors = vectors
        self._exact = exact
        self.n_covered = int(np.count_nonzero(self.is_covered & vectors.live))
        names = {shard.name for shard in self.record.shards}
        newer = [shard for shard in vectors.shards if shard.name not in names]
        self._newer = _ShardVectors(newer)
        self._newer_rows = np.flatnonzero(~self.is_covered)
        self._newer_index = QuickIndex(self._newer, device_name, [shard.part for shard in newer])

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """As `collection.scans.PassageScan.search`."""
        tops: list[TopRows] = []
        for start in range(0, len(queries), QUERY_GROUP):
            group = np.ascontiguousarray(queries[start : start + QUERY_GROUP], np.float32)
            covered = self._search_covered(group, k, allowed & self.is_covered)
            tops += self._add_newer(covered, group, k, allowed)
        return tops

    def _search_covered(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """As in `search`, among rows that the index has."""
        n_allowed = int(np.count_nonzero(allowed))
        wanted = min(k, n_allowed)
        if not wanted:
            return [_NO_ROWS for _ in queries]
        top_of: dict[int, TopRows] = {}
        waiting = np.arange(len(queries))
        # As deep as the share of rows that count lets expect.
        depth = -(-wanted * self.record.count // n_allowed)
        for _ in range(1 + _DEEPER_SEARCHES):
            if depth >= self.record.count or not len(waiting):
                break
            group = queries[waiting]
            for number, top in zip(
                waiting.tolist(), self._best_candidates(group, wanted, depth, allowed), strict=True
            ):
                if len(top.rows) >= wanted:
                    top_of[number] = top
            waiting = np.array([number for number in waiting if number not in top_of], np.int64)
            depth *= _DEEPER
        if len(waiting):
            tops = self._exact.search(queries[waiting], wanted, allowed)
            top_of.update(zip(waiting.tolist(), tops, strict=True))
        return [top_of[number] for number in range(len(queries))]

    def _best_candidates(
        self, queries: NDArray[np.float32], k: int, depth: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """The k best of the allowed candidates for the `depth` best rows of the index."""
        rows = self._rows.rows_of(self.index.rows(queries, depth))
        return best_of(self._vectors, queries, allowed_rows(rows, allowed), k)

    def _add_newer(
        self,
        covered: list[TopRows],
        queries: NDArray[np.float32],
        k: int,
        allowed: NDArray[np.bool_],
    ) -> list[TopRows]:
        """The best hits of the index and of newer shards."""
        if not len(self._newer):
            return covered
        newer = self._newer_index.search(queries, k, allowed[self._newer_rows])
        tops = []
        for covered_top, newer_top in zip(covered, newer, strict=True):
            scores = np.concatenate([covered_top.scores, newer_top.scores])
            rows = np.concatenate([covered_top.rows, self._newer_rows[newer_top.rows]])
            tops.append(top_rows(scores, rows, k))
        return tops


_NO_ROWS = TopRows(np.empty(0, np.float32), np.empty(0, np.int64))


class CandidateAnn(_RankingAnn):
    """Finds passages of a generation whose token vectors are near to a question's, as a
    `CandidateScan`.

    Parameters
    ----------
    generation : open
    kind : of the further model
    passages : of the generation
    """

    def __init__(
        self, generation: Generation, kind: Representation, passages: PassageVectors
    ) -> None:
        folder = generation.folder / kind.name
        if not (folder / ANN).exists() and not (folder / CLEARED).exists():
            raise InputError(
                f'collection {generation.folder} has no approximate index of the ranking '
                f"'{kind.ranking}': build it with `index ann`, for this ranking"
            )
        super().__init__(TokenRankingVectors(generation, kind, passages))
        self._kind = kind
        self._n_covered = int(np.count_nonzero(self.is_covered))

    def candidates(self, query: Any, k: int, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Passages among which the k best may be, int64 (m,).

        Passages of newer shards are all among them. Where few are allowed, or not many more than k,
        all that are allowed are.

        Parameters
        ----------
        query : of the representation
        k : how many passages are wanted; more are searched for where few count
        allowed : the passages that count, bool (rows,)
        """
        counted = allowed & self.is_covered
        n_counted = int(np.count_nonzero(counted))
        if n_counted <= _ALL_SHARE * self._n_covered:
            return np.flatnonzero(allowed)
        depth = -(-k * self._n_covered // n_counted)
        if depth >= self._n_covered:
            return np.flatnonzero(allowed)
        found = self.index.rows(self._kind.work.query_vectors(query), depth)
        rows = self._rows.rows_of(np.unique(found[found >= 0]))
        is_candidate = allowed & ~self.is_covered
        is_candidate[rows[rows >= 0]] = True
        return np.flatnonzero(is_candidate & allowed)

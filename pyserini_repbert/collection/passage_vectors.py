"""The vectors of a generation's passages, as one index: rows, and the documents they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.extension import Representation
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.index.sample import mean_vector, sample_positions
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.search.documents_of_passages import aggregate_groups
from pyserini_repbert.search.scores import shard_pair_scores


@dataclass(frozen=True)
class ScoredDocuments:
    """Documents with a passage that counts: their positions among those that were asked for, int64
    (n,), and their scores, float32 (n,).
    """

    positions: NDArray[np.int64]
    totals: NDArray[np.float32]


class PassageVectors:
    """All rows of a generation's shards, the largest shard first; dead rows keep their positions.

    Attributes
    ----------
    shards : in the order of their rows
    documents : the number of each row's document, int32 (n,)
    live : the rows that count, bool (n,)
    """

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        # The first block decides the first thresholds of a search, so it should be large.
        shards = sorted(generation.shards, key=lambda live: -len(live.shard))
        self.shards = [live.shard for live in shards]
        documents = [np.empty(0, np.int32)]
        masks = [np.empty(0, np.bool_)]
        for live in shards:
            documents.append(np.asarray(live.shard.documents))
            mask = live.live
            masks.append(np.ones(len(live.shard), np.bool_) if mask is None else mask)
        self.documents: NDArray[np.int32] = np.concatenate(documents)
        self.live: NDArray[np.bool_] = np.concatenate(masks)
        self._check_documents()

    def _check_documents(self) -> None:
        """Raises DamagedFileError for a row of a document that the collection never had."""
        if not len(self):
            return
        least = int(self.documents.min())
        greatest = int(self.documents.max())
        n_numbers = self._generation.n_numbers
        if least < 0 or greatest >= n_numbers:
            raise self._generation.damage(
                f'its shards have document numbers from {least} to {greatest}, its documents from '
                f'0 to {n_numbers - 1}'
            )

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def folder(self) -> Path:
        """The collection's."""
        return self._generation.folder

    @property
    def settings(self) -> CollectionSettings:
        """The collection's."""
        return self._generation.settings

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of the documents to which rows belong."""
        return self._generation.docids(self.documents[rows])

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """(first row, vectors (n, d)) of at most `size` rows each, in order."""
        return shard_blocks(self.shards, size)

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The number of each row's passage in its document, int32 (n,)."""
        parts = [np.asarray(shard.numbers) for shard in self.shards]
        return np.concatenate([np.empty(0, np.int32), *parts])

    @cached_property
    def n_documents(self) -> int:
        """How many documents have a passage."""
        documents = self._sorted_documents
        return min(1, len(documents)) + int(np.count_nonzero(np.diff(documents)))

    @cached_property
    def sample(self) -> NDArray[np.float32]:
        """Vectors of `sample_rows`, float32 (passages, d), the same for every question."""
        return self.gather(self.sample_rows)

    @cached_property
    def sample_rows(self) -> NDArray[np.int64]:
        """At most `SAMPLE` live rows, of all shards, int64 (passages,)."""
        live = np.flatnonzero(self.live)
        return live[sample_positions(len(live))]

    @cached_property
    def sample_mean(self) -> NDArray[np.float32]:
        return mean_vector(self.sample)

    def rows_of(self, docnos: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The live rows of documents, document after document.

        Parameters
        ----------
        docnos : numbers of documents, int64 (m,)

        Returns the rows, int64 (n,), and how many each document has, int64 (m,).
        """
        begins = np.searchsorted(self._sorted_documents, docnos, side='left')
        ends = np.searchsorted(self._sorted_documents, docnos, side='right')
        counts = ends - begins
        # The positions begin, begin + 1, …, end - 1 of each document, one after the other.
        firsts = np.repeat(begins - np.cumsum(counts) + counts, counts)
        positions = firsts + np.arange(counts.sum())
        return self._rows_by_document[positions].astype(np.int64), counts

    @cached_property
    def _rows_by_document(self) -> NDArray[np.int32]:
        """The live rows in the order of their documents."""
        rows = np.flatnonzero(self.live)
        order = np.argsort(self.documents[rows], kind='stable')
        return rows[order].astype(np.int32)

    @cached_property
    def _sorted_documents(self) -> NDArray[np.int32]:
        return self.documents[self._rows_by_document]

    def best_rows(self, query: NDArray[np.float32], docnos: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of the passage that fits a query best, for each document that has one.

        Parameters
        ----------
        query : its vector, float32 (d,)
        docnos : numbers of documents, int64 (m,)
        """
        rows, counts = self.rows_of(docnos)
        products = self.scores(query, rows)
        ends = np.cumsum(counts)
        best = [
            rows[start + int(np.argmax(products[start:end]))]
            for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)
            if end > start
        ]
        return np.array(best, np.int64)

    def gather(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of rows, float32 (n, d), in their order."""
        vectors = np.empty((len(rows), self.settings.dimension), np.float32)
        first = 0
        for shard in self.shards:
            inside = np.flatnonzero((rows >= first) & (rows < first + len(shard)))
            vectors[inside] = shard.vectors[rows[inside] - first]
            first += len(shard)
        return vectors

    def values(self, kind: Representation, rows: NDArray[np.int64]) -> list[Any]:
        """A further model's values of rows, in their order.

        Raises DamagedFileError if a shard has nothing of it.
        """
        starts = np.cumsum([0, *(len(shard) for shard in self.shards)])
        values = []
        for row in rows.tolist():
            number = int(np.searchsorted(starts, row, side='right')) - 1
            values.append(self.shards[number].rows_of(kind).value(row - int(starts[number])))
        return values

    def scores_by_docid(
        self,
        docids: Sequence[str],
        counted: NDArray[np.bool_],
        scores_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        aggregation: PassageAggregation | str,
    ) -> dict[str, float]:
        """The scores of documents by their passages, of those with a passage that counts.

        Parameters
        ----------
        docids : of the documents
        counted : which rows count, bool (n,); with the aggregation 'first', one of a document
        scores_of : the scores of rows, float32 (m,) from int64 (m,)
        aggregation : how passages' scores become document scores
        """
        chosen = PassageAggregation(aggregation)
        docnos = self._generation.docnos(docids)
        scored = self.score_documents(docnos, counted, scores_of, chosen)
        pairs = zip(scored.positions.tolist(), scored.totals.tolist(), strict=True)
        return {docids[position]: total for position, total in pairs}

    def score_documents(
        self,
        docnos: NDArray[np.int64],
        counted: NDArray[np.bool_],
        scores_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
        aggregation: PassageAggregation | str,
    ) -> ScoredDocuments:
        """The scores of documents by their passages, of those with a passage that counts.

        Parameters
        ----------
        docnos : the numbers of the documents, int64 (m,)
        counted, scores_of, aggregation : as in `scores_by_docid`
        """
        chosen = PassageAggregation(aggregation)
        rows, counts = self.rows_of(docnos)
        is_counted = counted[rows]
        owners = np.repeat(np.arange(len(docnos)), counts)[is_counted]
        found, starts = np.unique(owners, return_index=True)
        scores = scores_of(rows[is_counted])
        if chosen is PassageAggregation.FIRST or not len(found):
            return ScoredDocuments(found, scores[starts])
        return ScoredDocuments(found, aggregate_groups(scores, starts, chosen))

    def scores(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The inner products of a query's vector, float32 (d,), with rows: float32 (n,)."""
        owners = np.zeros(len(rows), np.int64)
        return shard_pair_scores(query.reshape(1, -1), self.shards, rows, owners)


def shard_blocks(shards: Sequence[PassageShard], size: int) -> Iterator[tuple[int, StoredVectors]]:
    """(first row, vectors (n, d)) of at most `size` rows each, with rows numbered across shards."""
    first = 0
    for shard in shards:
        for start in range(0, len(shard), size):
            yield first + start, shard.vectors[start : start + size]
        first += len(shard)


def distinct_in_order(values: Iterable[int]) -> NDArray[np.int64]:
    """The values, each where it comes first."""
    return np.array(list(dict.fromkeys(values)), np.int64)

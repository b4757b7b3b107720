"""`IndexDocuments`: the documents of an open index, as rerankers read them; and their graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.index.neighbours import (
    AGAIN,
    MOST_NEIGHBOURS,
    NO_NEIGHBOUR,
    NeighbourGraph,
    NeighboursRecord,
    check_target,
    open_neighbours,
    write_neighbours,
)
from pyserini_repbert.indexes.kind import Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.numbers import DocumentNumbers
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.rerank.documents import SearchedDocuments

_DENSE = 'dense'
# Documents whose neighbours are searched together.
_BATCH = 512


class IndexDocuments(SearchedDocuments):
    """The documents of an index.

    Parameters
    ----------
    index : open
    machine : where it is searched
    give_texts : gives hits their texts, as `with_texts`; None: the index does
    closes : whether `close` closes the index
    """

    def __init__(
        self,
        index: Index,
        machine: Machine,
        give_texts: Callable[[str, Ranking, int], Ranking] | None = None,
        closes: bool = False,
    ) -> None:
        self._index = index
        self._machine = machine
        self._give_texts = give_texts or self._with_stored_texts
        self._closes = closes

    @cached_property
    def _dense(self) -> Any:
        """The dense ranking."""
        index = self._index
        if _DENSE not in index.offered.names:
            raise InputError(
                f"'{index.location}' is {index.kind.what}, without vectors: name a dense index or "
                'a collection',
                parameters=('index',),
            )
        return index.ranking(_DENSE, self._machine)

    @cached_property
    def _numbers(self) -> DocumentNumbers:
        return self._index.numbers(self._machine)

    @cached_property
    def _graph(self) -> NeighbourGraph:
        graph = open_neighbours(self._numbers.folder, self._numbers.sha256)
        if graph.record.documents != self._numbers.count:
            raise DamagedFileError(
                f'{self._numbers.folder} has {self._numbers.count} numbers of documents, its graph '
                f'of neighbours {graph.record.documents}: {AGAIN}'
            )
        return graph

    @cached_property
    def _is_searched(self) -> NDArray[np.bool_] | None:
        return self._numbers.searched()

    def vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        vectors: dict[str, NDArray[np.float32]] = self._dense.document_vectors(docids)
        return vectors

    def query_vectors(self, queries: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._dense.encode(queries)
        return vectors

    def dense_scores(self, query: NDArray[np.float32], docids: Sequence[str]) -> dict[str, float]:
        scores: dict[str, float] = self._dense.scores_by_docid(query, docids)
        return scores

    def neighbours(self, docids: Sequence[str], n: int) -> list[tuple[str, ...]]:
        record = self._graph.record
        if n > record.neighbours:
            raise InputError(
                f'{n} neighbours of a document were asked for, and the graph of '
                f"'{self._index.location}' has {record.neighbours}: ask for fewer, or {AGAIN}"
            )
        numbers = self._numbers.numbers(docids)
        rows = np.full((len(docids), n), NO_NEIGHBOUR, np.int64)
        is_here = numbers >= 0
        rows[is_here] = self._graph.edges[numbers[is_here], :n]
        if rows.min(initial=NO_NEIGHBOUR) < NO_NEIGHBOUR or rows.max(initial=0) >= record.documents:
            raise DamagedFileError(
                f'the graph of neighbours of {self._numbers.folder} names a document that is not '
                f'there: {AGAIN}'
            )
        is_neighbour = rows != NO_NEIGHBOUR
        if self._is_searched is not None:
            is_neighbour &= self._is_searched[rows]
        distinct = np.unique(rows[is_neighbour])
        docid_of = dict(zip(distinct.tolist(), self._numbers.docids(distinct), strict=True))
        found: list[tuple[str, ...]] = []
        for row, mask in zip(rows, is_neighbour, strict=True):
            found.append(tuple(docid_of[number] for number in row[mask].tolist()))
        return found

    def with_texts(self, query: str, ranking: Ranking, n_excerpts: int) -> Ranking:
        ranking = self._give_texts(query, ranking, n_excerpts)
        for hit in ranking:
            if hit.text is None:
                raise InputError(
                    f"document '{hit.docid}' comes from the graph of neighbours, and "
                    f"'{self._index.location}' stores no texts: name an index that does",
                    parameters=('index',),
                )
        return ranking

    def _with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int) -> Ranking:
        if self._index.kind.finds_passages:
            searcher = self._index.searcher(self._machine)
            return searcher.with_stored_texts(query, ranking, n_excerpts)
        store = self._index.store(self._machine)
        if store is None:
            return ranking
        texts = store.texts(ranking.docids)
        return ranking.with_texts(dict(zip(ranking.docids, texts, strict=True)))

    def graph_identity(self) -> Mapping[str, Any]:
        record = self._graph.record
        return {
            'ranking': record.ranking,
            'neighbours': record.neighbours,
            'sha256': record.edges_sha256,
        }

    def close(self) -> None:
        if self._closes:
            self._index.close()


def build_neighbours(
    index: Index,
    machine: Machine,
    ranking: str,
    n: int,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> NeighboursRecord:
    """Find the nearest documents of each document, and store them in the folder of the index.

    A document is searched for by one of the rankings of its index, as in "more like this".

    Parameters
    ----------
    index : open, without a filter
    machine : where it is searched
    ranking : of the index: 'dense', 'bm25'
    n : neighbours of a document
    overwrite : replace a graph that is there
    on_progress : called with the number of documents done since the last call

    Raises InputError for an index without documents, or without numbers of documents, and for a
    ranking that it does not have, or that takes questions alone.
    """
    if not 1 <= n <= MOST_NEIGHBOURS:
        raise InputError(
            f'{n} neighbours of a document were asked for, expected 1 to {MOST_NEIGHBOURS}',
            parameters=('neighbours',),
        )
    numbers = index.numbers(machine)
    check_target(numbers.folder, overwrite)
    used = numbers.used()
    if not len(used):
        raise InputError(f"'{index.location}' has no documents, and so no neighbours: add some")
    searcher = index.ranking(ranking, machine).by_documents()
    searcher = searcher.with_settings(threads=machine.threads)
    edges = np.full((numbers.count, n), NO_NEIGHBOUR, np.int32)
    for start in range(0, len(used), _BATCH):
        batch = used[start : start + _BATCH]
        _fill(edges, batch, numbers, searcher)
        on_progress(len(batch))
    record = NeighboursRecord(
        ranking=ranking,
        neighbours=n,
        documents=numbers.count,
        index_sha256=numbers.sha256,
        # Known when the file is written.
        edges_sha256='0' * 64,
    )
    return write_neighbours(numbers.folder, edges, record, overwrite)


def _fill(
    edges: NDArray[np.int32],
    batch: NDArray[np.int64],
    numbers: DocumentNumbers,
    searcher: Ranker,
) -> None:
    """Write the neighbours of a batch of documents into their rows of `edges`."""
    topics: list[Query] = []
    for number, docid in zip(batch.tolist(), numbers.docids(batch), strict=True):
        topics.append(Query(str(number), docid))
    run = searcher.rank(topics, None, edges.shape[1])
    for topic in topics:
        found = numbers.numbers(run[topic.qid].docids)
        edges[int(topic.qid), : len(found)] = found

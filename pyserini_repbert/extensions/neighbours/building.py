"""Making the graph of neighbours of an index, by searching for each of its documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.neighbours.graph import (
    MOST_NEIGHBOURS,
    NO_NEIGHBOUR,
    NeighboursRecord,
    check_target,
    numbers_of_graph,
    write_neighbours,
)
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.indexes.kind import Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.ranking import Query, Ranker

# Documents whose neighbours are searched together.
_BATCH = 512


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
    machine : where the search runs
    ranking : of the index: 'dense', 'bm25'
    n : neighbours of a document
    overwrite : replace a graph that is there
    on_progress : called with the number of documents done since the last call

    Raises InputError for an index without documents, or without document numbers, and for a ranking
    that it does not have, or that takes only questions.
    """
    if not 1 <= n <= MOST_NEIGHBOURS:
        raise InputError(
            f'{n} neighbours of a document were asked for, expected 1 to {MOST_NEIGHBOURS}',
            parameters=('neighbours',),
        )
    numbers = numbers_of_graph(index.numbers(machine), index.description)
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
    topics: list[Query] = [
        Query(str(number), docid)
        for number, docid in zip(batch.tolist(), numbers.docids(batch), strict=True)
    ]
    run = searcher.rank(topics, None, edges.shape[1])
    for topic in topics:
        neighbours = numbers.numbers(run[topic.qid].docids)
        edges[int(topic.qid), : len(neighbours)] = neighbours

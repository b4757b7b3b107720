"""The nearest documents of each document of an index, its corpus graph: `neighbours/edges.npy`.

`neighbours/neighbours.json` describes it. A graph belongs to one state of its index: its record
pins the sha256 of a bundle's manifest, or of a collection's generation.

Corpus graphs: MacAvaney, Tonellotto, Macdonald, CIKM 2022, https://arxiv.org/abs/2208.08942
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.extensions.neighbours.form import (
    EDGES,
    LOCK,
    NEIGHBOURS,
    NEIGHBOURS_FORM,
    RECORD,
)
from pyserini_repbert.files import atomic_folder, locked
from pyserini_repbert.folder_forms import refuse_link
from pyserini_repbert.index.bundle import mapped
from pyserini_repbert.index.manifest import read_record, write_json
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.index.records import Count, Name
from pyserini_repbert.record import Sha256

# Fills a row of `edges.npy` if a document has no further neighbour.
NO_NEIGHBOUR = -1
# Of a document, as in the paper.
DEFAULT_NEIGHBOURS = 16
MOST_NEIGHBOURS = 1024
AGAIN = 'make it again with `index neighbours`'
_OUTDATED = 'has the neighbours of what the index was before it changed'


@dataclass(
    frozen=True, kw_only=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True)
)
class NeighboursRecord:
    """The record of a graph, `neighbours.json`."""

    ranking: Name  # of the index, which found the neighbours
    neighbours: Annotated[int, Field(ge=1, le=MOST_NEIGHBOURS)]  # of a document, at most
    documents: Count  # rows of `edges.npy`: numbers of documents
    index_sha256: Sha256  # the state of the index
    edges_sha256: Sha256  # of `edges.npy`
    format_version: Annotated[int, Field(ge=1, le=1)] = 1

    def __str__(self) -> str:
        """'16 neighbours of each document by dense'"""
        return f'{self.neighbours} neighbours of each document by {self.ranking}'


def numbers_of_graph(numbers: DocumentNumbers | None, index: str) -> DocumentNumbers:
    """The numbers by which a graph keeps the documents of an index.

    Parameters
    ----------
    numbers : of the index; None if its documents have none
    index : a clause that says what it is, as `Index.description`

    Raises InputError for an index without numbers.
    """
    if numbers is None:
        raise InputError(
            f'{index}: a graph of neighbours is of a dense index or a collection, so encode its '
            'passages, or make a collection of its documents',
            parameters=('index',),
        )
    return numbers


class NeighbourGraph:
    """The graph of an index, by docids.

    Parameters
    ----------
    numbers : of the documents of the index; within a filter, those that match are neighbours

    Raises InputError if there is none, MismatchError for the graph of another state of the index,
    and DamagedFileError if it is incomplete.
    """

    def __init__(self, numbers: DocumentNumbers) -> None:
        self._numbers = numbers
        self._is_searched = numbers.searched()
        files = open_neighbours(numbers.folder, numbers.sha256)
        self._edges = files.edges
        self._record = files.record
        if self._record.documents != numbers.count:
            raise DamagedFileError(
                f'{numbers.folder} has {numbers.count} numbers of documents, its graph of '
                f'neighbours {self._record.documents}: {AGAIN}'
            )

    def identity(self) -> Mapping[str, Any]:
        """Which graph it is, for records."""
        return {
            'ranking': self._record.ranking,
            'neighbours': self._record.neighbours,
            'sha256': self._record.edges_sha256,
        }

    def neighbours(self, docids: Sequence[str], n: int) -> list[tuple[str, ...]]:
        """The n nearest documents of each document, the nearest first, or fewer.

        Raises InputError for a graph with fewer than n, DamagedFileError for one that names a
        document that does not exist.
        """
        if n > self._record.neighbours:
            raise InputError(
                f'{n} neighbours of a document were asked for, and the graph of '
                f'{self._numbers.folder} has {self._record.neighbours}: ask for fewer, or {AGAIN}'
            )
        numbers = self._numbers.numbers(docids)
        rows = np.full((len(docids), n), NO_NEIGHBOUR, np.int64)
        is_here = numbers >= 0
        rows[is_here] = self._edges[numbers[is_here], :n]
        least = rows.min(initial=NO_NEIGHBOUR)
        greatest = rows.max(initial=NO_NEIGHBOUR)
        if least < NO_NEIGHBOUR or greatest >= self._record.documents:
            raise DamagedFileError(
                f'the graph of neighbours of {self._numbers.folder} names a document that is not '
                f'there: {AGAIN}'
            )
        is_neighbour = rows != NO_NEIGHBOUR
        if self._is_searched is not None:
            is_neighbour &= self._is_searched[rows]
        distinct = np.unique(rows[is_neighbour])
        docid_of = dict(zip(distinct.tolist(), self._numbers.docids(distinct), strict=True))
        neighbours: list[tuple[str, ...]] = []
        for row, mask in zip(rows, is_neighbour, strict=True):
            neighbours.append(tuple(docid_of[number] for number in row[mask].tolist()))
        return neighbours


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True, defer_build=True))
class GraphFiles:
    """The files of a graph, open.

    Attributes
    ----------
    record : what it is
    edges : the numbers of each document's neighbours, the nearest first, int32 (documents,
        neighbours), memory-mapped; `NO_NEIGHBOUR` if there are fewer
    """

    record: NeighboursRecord
    edges: NDArray[np.int32]


def write_neighbours(
    folder: Path, edges: NDArray[np.int32], record: NeighboursRecord, overwrite: bool = False
) -> NeighboursRecord:
    """Write a graph into the folder of its index, atomically.

    Parameters
    ----------
    folder : of the index
    edges : as in `GraphFiles`
    record : its values, except for the sha256 of its file
    overwrite : replace a graph that is there

    Returns the record as written. Raises the errors of `check_target`, and BusyError if another
    process writes the graph.
    """
    with locked(folder / LOCK, f'the graph of neighbours of {folder}'):
        check_target(folder, overwrite)
        with atomic_folder(folder / NEIGHBOURS, NEIGHBOURS_FORM) as written:
            np.save(written / EDGES, edges)
            record = replace(record, edges_sha256=digest(written / EDGES))
            write_json(written / RECORD, record, is_signed=True)
    return record


def check_target(folder: Path, overwrite: bool) -> None:
    """Raise InputError if an index has a graph that must not be replaced, a link in its place,
    or what this package does not write.
    """
    target = folder / NEIGHBOURS
    if target.exists() and not overwrite:
        raise InputError(
            f'index {folder} has a graph of neighbours: replace it', parameters=('overwrite',)
        )
    refuse_link(target)
    NEIGHBOURS_FORM.check(target)


def copy_neighbours(folder: Path, target: Path, index_sha256: str) -> list[str]:
    """Copy the graph of an index into a copy of the index.

    Parameters
    ----------
    folder, target : of the index, and of its copy
    index_sha256 : the state of both

    Returns a line about the graph of another state, which is not copied, or none. Raises
    DamagedFileError for a graph that is not intact.
    """
    try:
        files = open_neighbours(folder, index_sha256)
    except MismatchError:
        return [f'{folder / NEIGHBOURS} {_OUTDATED}, and was left out: {AGAIN}']
    write_neighbours(target, files.edges, files.record)
    return []


def describe_neighbours(folder: Path, index_sha256: str) -> str:
    """A line that says what the graph of an index is, once its file is compared.

    Parameters are as in `open_neighbours`. Raises DamagedFileError for a graph that is not intact.
    """
    graph_folder = folder / NEIGHBOURS
    try:
        files = open_neighbours(folder, index_sha256, remembered=False)
    except MismatchError:
        return f'{graph_folder}: {_OUTDATED}'
    return f'{graph_folder}: intact, {files.record}'


def open_neighbours(folder: Path, index_sha256: str, remembered: bool = True) -> GraphFiles:
    """Open the files of an index's graph.

    Parameters
    ----------
    folder : of the index
    index_sha256 : the state of the index
    remembered : trust a checksum computed before, as long as the file seems untouched

    Raises InputError if there is none, MismatchError for the graph of another state, and
    DamagedFileError if it is incomplete.
    """
    graph_folder = folder / NEIGHBOURS
    if not graph_folder.exists():
        raise InputError(
            f'index {folder} has no graph of neighbours: make it with `index neighbours`'
        )
    record = read_record(graph_folder / RECORD, NeighboursRecord, is_signed=True)
    if record.index_sha256 != index_sha256:
        raise MismatchError(f'{graph_folder} {_OUTDATED}: {AGAIN}')
    compare_digest(graph_folder / EDGES, record.edges_sha256, graph_folder / RECORD, remembered)
    shape = (record.documents, record.neighbours)
    edges = mapped(graph_folder / EDGES, np.int32, shape, advice=AGAIN)
    return GraphFiles(record, edges)

"""The nearest documents of each document of an index, its corpus graph: `neighbours/edges.npy`.

`neighbours/neighbours.json` describes it. A graph belongs to one state of its index: its record
pins the sha256 of a bundle's manifest, or of a collection's generation.

Corpus graphs: MacAvaney, Tonellotto, Macdonald, CIKM 2022, https://arxiv.org/abs/2208.08942
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import atomic_folder, locked
from pyserini_repbert.folder_forms import TEMPORARY, FolderForm, refuse_link
from pyserini_repbert.index.bundle import mapped
from pyserini_repbert.index.manifest import read_record, write_json
from pyserini_repbert.index.records import Count, Name
from pyserini_repbert.record import Sha256

NEIGHBOURS = 'neighbours'
EDGES = 'edges.npy'
RECORD = 'neighbours.json'
LOCK = '.neighbours.lock'
NEIGHBOURS_FORM = FolderForm(
    'graph of neighbours', (re.escape(EDGES), rf'\.?{re.escape(RECORD)}(\.{TEMPORARY})?')
)
# What a graph has in the folder of its index, also while it is replaced.
NEIGHBOURS_FILES = (
    re.escape(LOCK),
    *NEIGHBOURS_FORM.below(rf'({NEIGHBOURS}|\.{NEIGHBOURS}\.{TEMPORARY})'),
)
# Stands in a row of `edges.npy` where a document has no further neighbour.
NO_NEIGHBOUR = -1
# Of a document, as in the paper.
DEFAULT_NEIGHBOURS = 16
MOST_NEIGHBOURS = 1024
AGAIN = 'make it again with `index neighbours`'
_OUTDATED = 'has the neighbours of what the index was before it changed'


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra='forbid'))
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


@dataclass(frozen=True, config=ConfigDict(arbitrary_types_allowed=True))
class NeighbourGraph:
    """A graph that is open.

    Attributes
    ----------
    record : what it is
    edges : the numbers of each document's neighbours, the nearest first, int32 (documents,
        neighbours), memory-mapped; `NO_NEIGHBOUR` where there are fewer
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
    edges : as in `NeighbourGraph`
    record : what is known of it but for the sha256 of its file
    overwrite : replace a graph that is there

    Returns the record as written. Raises the errors of `check_target`, and BusyError where another
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
    """Raise InputError where an index has a graph that must not be replaced, a link in its place,
    or what this package does not write.
    """
    target = folder / NEIGHBOURS
    if target.exists() and not overwrite:
        raise InputError(
            f'index {folder} has a graph of neighbours: replace it', parameters=('overwrite',)
        )
    refuse_link(target)
    NEIGHBOURS_FORM.check(target)


def describe_neighbours(folder: Path, index_sha256: str) -> str:
    """A line that says what the graph of an index is, once its file is compared; '' without one.

    Parameters are as of `open_neighbours`. Raises DamagedFileError for a graph that is not whole.
    """
    place = folder / NEIGHBOURS
    if not place.exists():
        return ''
    try:
        graph = open_neighbours(folder, index_sha256, remembered=False)
    except MismatchError:
        return f'{place}: {_OUTDATED}'
    return f'{place}: whole, {graph.record}'


def open_neighbours(folder: Path, index_sha256: str, remembered: bool = True) -> NeighbourGraph:
    """The graph of an index.

    Parameters
    ----------
    folder : of the index
    index_sha256 : the state of the index
    remembered : trust a checksum computed before, as long as the file seems untouched

    Raises InputError if there is none, MismatchError for the graph of another state, and
    DamagedFileError for one that is not whole.
    """
    place = folder / NEIGHBOURS
    if not place.exists():
        raise InputError(
            f'index {folder} has no graph of neighbours: make it with `index neighbours`'
        )
    record = read_record(place / RECORD, NeighboursRecord, is_signed=True)
    if record.index_sha256 != index_sha256:
        raise MismatchError(f'{place} {_OUTDATED}: {AGAIN}')
    compare_digest(place / EDGES, record.edges_sha256, place / RECORD, remembered)
    shape = (record.documents, record.neighbours)
    edges = mapped(place / EDGES, np.int32, shape, advice=AGAIN)
    return NeighbourGraph(record, edges)

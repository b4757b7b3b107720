"""An open index with its graph of neighbours, as tests of several folders ask for it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pyserini_repbert.extensions.neighbours.building import build_neighbours
from pyserini_repbert.extensions.neighbours.graph import NeighbourGraph
from pyserini_repbert.indexes.documents import IndexDocuments
from pyserini_repbert.indexes.kind import Index, SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine


@contextmanager
def open_with_graph(folder: Path, n: int) -> Iterator[Index]:
    """An index, for which the graph of n neighbours of each document was made."""
    with closing(kind_of(str(folder)).open(str(folder), SearchOptions())) as index:
        build_neighbours(index, Machine(), 'dense', n)
        yield index


def documents_of(index: Index) -> IndexDocuments:
    """Its documents, as rerankers read them."""
    return IndexDocuments(index, Machine())


def neighbours(documents: IndexDocuments, docids: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """The n nearest documents of each document, by the graph."""
    return NeighbourGraph(documents.numbers).neighbours(docids, n)

"""What the graph of neighbours is in the folder of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.extensions.neighbours.form import NEIGHBOURS, NEIGHBOURS_FILES
from pyserini_repbert.index.parts import BundlePart

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation


class GraphInBundles(BundlePart):
    """The graph of a bundle."""

    files = NEIGHBOURS_FILES

    def check(self, folder: Path, index_sha256: str) -> list[str]:
        return _check_graph(folder, index_sha256)


class GraphInCollections(CollectionPart):
    """The graph of a collection."""

    files = NEIGHBOURS_FILES

    def check(self, generation: Generation) -> list[str]:
        return _check_graph(generation.folder, generation.sha256)

    def copy(self, generation: Generation, target: Path) -> list[str]:
        if not (generation.folder / NEIGHBOURS).exists():
            return []
        from pyserini_repbert.extensions.neighbours.graph import copy_neighbours

        return copy_neighbours(generation.folder, target, generation.sha256)


def _check_graph(folder: Path, index_sha256: str) -> list[str]:
    """A line about an index's graph, if it has one."""
    if not (folder / NEIGHBOURS).exists():
        return []
    from pyserini_repbert.extensions.neighbours.graph import describe_neighbours

    return [describe_neighbours(folder, index_sha256)]


IN_BUNDLES = GraphInBundles()
IN_COLLECTIONS = GraphInCollections()

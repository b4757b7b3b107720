"""Collections: documents that live, by the vectors and the words of their passages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions


class CollectionKind(IndexKind):
    name = 'collection'
    what = 'a collection'
    takes = frozenset('rankings aggregate filter only_ids not_ids ann adapted max_length'.split())
    finds_passages = True
    is_writable = True

    def holds(self, folder: Path) -> bool:
        return is_collection(folder)

    def index_type(self, location: str) -> str:
        return self.name

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.indexes.collection.searching import CollectionIndex

        return CollectionIndex(self, location, options, before)


KIND = CollectionKind()

"""Collections: documents that live, by the vectors and the words of their passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.indexes.kind import (
    USUAL_RANKING,
    Index,
    IndexKind,
    SearchOptions,
    WrittenAnn,
)

if TYPE_CHECKING:
    from pyserini_repbert.search.ann import AnnSettings


class CollectionKind(IndexKind):
    """Collections."""

    name = 'collection'
    what = 'a collection'
    takes = frozenset('rankings aggregate filter only_ids not_ids ann adapted max_length'.split())
    finds_passages = True
    is_writable = True

    def holds(self, folder: Path) -> bool:
        return is_collection(folder)

    def index_type(self, location: str) -> str:
        return self.name

    def verify(self, folder: Path, on_difference: Callable[[str], object]) -> str:
        from pyserini_repbert.collection.checking import check_collection

        return check_collection(folder, on_difference=on_difference)

    def build_ann(
        self,
        folder: Path,
        settings: AnnSettings,
        on_progress: Callable[[int], object],
        overwrite: bool = False,
        ranking: str = USUAL_RANKING,
    ) -> WrittenAnn:
        from pyserini_repbert.collection.approximate_representation import (
            ann_folder,
            build_ranking_ann,
        )

        record = build_ranking_ann(
            folder, ranking, settings, overwrite=overwrite, on_progress=on_progress
        )
        return WrittenAnn.at(ann_folder(folder, ranking), record)

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.collection.index.collection_index import CollectionIndex

        return CollectionIndex(self, location, options, before)


KIND = CollectionKind()

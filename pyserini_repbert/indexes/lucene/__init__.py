"""Lucene indexes: of words, of EPIC's impacts, and of impacts that other programs built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions
from pyserini_repbert.lucene.index_record import EPIC_IMPACT, built_variant
from pyserini_repbert.lucene.lucene_form import is_lucene_index


class LuceneKind(IndexKind):
    """Lucene indexes."""

    name = 'lucene'
    what = 'a Lucene index'

    def holds(self, folder: Path) -> bool:
        return is_lucene_index(folder)

    def index_type(self, location: str) -> str:
        return 'impact' if built_variant(Path(location)) == EPIC_IMPACT else 'tf'

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.indexes.lucene.lucene_index import LuceneIndex

        return LuceneIndex(self, location, options)


KIND = LuceneKind()

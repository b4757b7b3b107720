"""Bundles of term weights: EPIC's, or a `SparseEncoder`'s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert.index.manifest import MANIFEST, manifest_kind
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions


class TermWeightsKind(IndexKind):
    """Bundles of term weights."""

    name = 'term_weights'
    what = 'an index of term weights'
    takes = frozenset(('max_length',))

    def holds(self, folder: Path) -> bool:
        return (folder / MANIFEST).is_file() and manifest_kind(folder) == TermWeightsSettings.kind

    def index_type(self, location: str) -> str:
        return 'impact'

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.indexes.term_weights.term_weights_index import TermWeightsIndex

        return TermWeightsIndex(self, location, options)


KIND = TermWeightsKind()

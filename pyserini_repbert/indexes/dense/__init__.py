"""Indexes of dense vectors: bundles of this package, FAISS folders, and names of the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.faiss_form import is_faiss_folder
from pyserini_repbert.index.manifest import MANIFEST, manifest_kind, missing_manifest
from pyserini_repbert.index.records import DenseSettings
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions
from pyserini_repbert.names.indexes import locate

if TYPE_CHECKING:
    from pyserini_repbert.indexes.machine import Machine


class DenseKind(IndexKind):
    """Indexes of dense vectors."""

    name = 'dense'
    what = 'an index of dense vectors'
    takes = frozenset(('adapted', 'ray', 'build', 'max_length'))
    has_scans = True

    def holds(self, folder: Path) -> bool:
        if (folder / MANIFEST).is_file():
            return manifest_kind(folder) == DenseSettings.kind
        return is_faiss_folder(folder) or catalog.find('indexes', str(folder)) is not None

    def index_type(self, location: str) -> str:
        folder = Path(location)
        has_manifest = (folder / MANIFEST).is_file() or catalog.find('indexes', location)
        return 'dense' if has_manifest else 'faiss'

    def check(self, location: str, options: SearchOptions, machine: Machine | None = None) -> None:
        try:
            super().check(location, options, machine)
        except InputError:
            # What no kind holds comes here, too: then its options are not to blame.
            if isinstance(locate(location), Path) and not self.holds(Path(location)):
                raise missing_manifest(location) from None
            raise

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.indexes.dense.dense_index import DenseIndex

        return DenseIndex(self, location, options)


KIND = DenseKind()

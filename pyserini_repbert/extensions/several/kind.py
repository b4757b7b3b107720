"""The kind of index that several collections are: 'notes:mail', as folders in a PATH."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions
from pyserini_repbert.indexes.machine import Machine


class SeveralKind(IndexKind):
    """Several collections."""

    name = 'several'
    what = 'several collections'
    takes = frozenset('rankings aggregate filter'.split())
    has_scans = True
    finds_passages = True

    def holds(self, folder: Path) -> bool:
        return os.pathsep in str(folder) and not folder.exists()

    def index_type(self, location: str) -> str:
        return 'collection'

    def check(self, location: str, options: SearchOptions, machine: Machine | None = None) -> None:
        super().check(location, options, machine)
        if options.encoder is not None:
            raise InputError(
                f"encoder '{options.encoder}' was named, and each of {self.what} has its own: "
                'leave it out',
                parameters=('encoder',),
            )

    def open(self, location: str, options: SearchOptions, before: Any = None) -> Index:
        from pyserini_repbert.extensions.several.index import SeveralIndexes

        return SeveralIndexes(self, location, options, before)


KIND = SeveralKind()

"""What approximate indexes are in the folders of bundles and collections."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.extensions.approximate.form import ANN, ANN_FILES, ANN_FORM, CLEARED, LOCK
from pyserini_repbert.files import locked, remove_leftovers
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.index.parts import BundlePart

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation

_FILES = (re.escape(LOCK), *ANN_FILES)


class AnnInBundles(BundlePart):
    """The approximate index of a bundle."""

    files = _FILES

    def check(self, folder: Path, index_sha256: str) -> list[str]:
        if not (folder / ANN).exists():
            return []
        from pyserini_repbert.extensions.approximate.bundles import open_ann
        from pyserini_repbert.index.dense import DenseBundle
        from pyserini_repbert.indexes.kind import kind_of

        if not kind_of(str(folder)).has_scans:
            return []
        record = open_ann(DenseBundle(folder, verify=False), remembered=False).record
        return [f'{folder / ANN}: intact, {record}']

    @contextlib.contextmanager
    def replacing(self, folder: Path) -> Iterator[None]:
        with locked(folder / LOCK, f'the approximate index of {folder}'):
            for name in (ANN, CLEARED):
                ANN_FORM.remove(folder / name)
            remove_leftovers(folder, ANN)
            yield


class AnnInCollections(CollectionPart):
    """The approximate indexes of a collection."""

    @cached_property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        from pyserini_repbert.extensions.approximate.folders import kinds_with_vectors

        files = list(_FILES)
        for kind in kinds_with_vectors():
            files += FolderForm('folder of an approximate index', _FILES).below(kind.name)
        return tuple(files)

    def after_cleaning(self, folder: Path, shards: Sequence[str]) -> None:
        for parent in _folders_with_ann(folder):
            from pyserini_repbert.extensions.approximate.covered import remove_unused_ann

            remove_unused_ann(parent, shards)

    def copy(self, generation: Generation, target: Path) -> list[str]:
        for parent in _folders_with_ann(generation.folder):
            from pyserini_repbert.extensions.approximate.covered import copy_collection_ann

            copy_collection_ann(parent, target / parent.relative_to(generation.folder))
        return []

    def check(self, generation: Generation) -> list[str]:
        if not _folders_with_ann(generation.folder):
            return []
        from pyserini_repbert.extensions.approximate.checking import describe_anns

        return describe_anns(generation)


def _folders_with_ann(folder: Path) -> list[Path]:
    """The folders of a collection in which an approximate index is."""
    from pyserini_repbert.extensions.approximate.folders import ann_folders

    return [parent for parent in ann_folders(folder) if (parent / ANN).exists()]


IN_BUNDLES = AnnInBundles()
IN_COLLECTIONS = AnnInCollections()

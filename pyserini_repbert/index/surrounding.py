"""The index that contains a path."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from pyserini_repbert.files import StrPath
from pyserini_repbert.index.faiss_form import is_faiss_folder
from pyserini_repbert.index.manifest import MANIFEST, SETTINGS, is_collection

_SHARD = re.compile('shard-[0-9]{5,}')
_SEGMENTS = re.compile('segments_[0-9a-z]+')


def surrounding_index(path: StrPath) -> Path | None:
    """The folder of the index or the collection that contains a path.

    None if there is none; an index does not contain itself.
    """
    for folder in Path(os.path.realpath(path)).parents:
        if is_index_folder(folder):
            return folder
    return None


def is_index_folder(folder: Path) -> bool:
    """Whether a folder holds a collection, a bundle, a FAISS or a Lucene index."""
    if is_collection(folder) or is_faiss_folder(folder):
        return True
    names: set[str] = set()
    with contextlib.suppress(OSError):
        names.update(os.listdir(folder))
    if any(map(_SEGMENTS.fullmatch, names)):
        return True
    has_record = MANIFEST in names or SETTINGS in names
    return has_record and any(map(_SHARD.fullmatch, names))

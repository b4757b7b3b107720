"""A command's inputs by name and checksum."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.names.corpora import collection_file
from pyserini_repbert.names.indexes import NamedIndex, locate
from pyserini_repbert.record import Input, checksum


def input_of(role: str, name: str) -> Input:
    """An input that a command has read, with the checksum of its file or folder, if any."""
    path: Path | None = Path(name)
    if not Path(name).exists():
        path = _path_in_catalog(role, name)
    if path is None:
        return Input(role, name)
    return Input(role, name, checksum(path))


def _path_in_catalog(role: str, name: str) -> Path | None:
    """The file or folder of a catalog's name; None for another name."""
    if role == 'corpus':
        entry = catalog.find('collections', name)
        return collection_file(entry) if entry else None
    if role == 'topics':
        return catalog.file('topics', name)
    if role == 'index' and catalog.find('indexes', name):
        location = locate(name)
        return location.folder if isinstance(location, NamedIndex) else location
    return None

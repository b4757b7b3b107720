"""Names that a user may type, resolved through `catalog.yaml`, never guessed from a path."""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import DamagedFileError, MissingResourceError, UnknownNameError

KINDS = ('bases', 'encoders', 'rerankers', 'sparse', 'collections', 'indexes', 'topics', 'qrels')


@dataclass(frozen=True)
class Entry:
    """One name of the catalog: `values` are its fields in catalog.yaml."""

    kind: str
    name: str
    values: Mapping[str, Any]

    @property
    def description(self) -> str:
        """One line for tables."""
        return str(self.values['description'])


def cache_folder() -> Path:
    """Where downloads and built indexes live: $PYSERINI_REPBERT_CACHE, else ~/.cache/pyserini_repbert."""
    chosen = os.environ.get('PYSERINI_REPBERT_CACHE')
    return Path(chosen) if chosen else Path.home() / '.cache' / 'pyserini_repbert'


@cache
def entries(kind: str) -> dict[str, Entry]:
    """All entries of a kind, in the catalog's order."""
    import yaml

    text = Path(__file__).with_suffix('.yaml').read_text(encoding='utf-8')
    return {name: Entry(kind, name, values) for name, values in (yaml.safe_load(text).get(kind) or {}).items()}


def find(kind: str, name: str) -> Entry | None:
    """The entry, or None."""
    return entries(kind).get(name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean …?)' with the nearest known names, or ''."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f' (did you mean {" or ".join(repr(other) for other in near)}?)' if near else ''


def get(kind: str, name: str) -> Entry:
    """The entry. Raises UnknownNameError with the nearest names."""
    entry = find(kind, name)
    if entry is None:
        known = entries(kind)
        raise UnknownNameError(
            f"'{name}' is neither one of the catalog's {kind}{did_you_mean(name, known)} nor an existing path: "
            f'known are {", ".join(known)}'
        )
    return entry


def file(kind: str, name: str) -> Path | None:
    """The file of an entry that ships with this package, or None where the catalog has no such name."""
    entry = find(kind, name)
    return None if entry is None else resource(entry)


def resource(entry: Entry) -> Path:
    """The path of an entry's `resource`. Raises MissingResourceError where the installation lacks it."""
    path = Path(__file__).parent / 'resources' / str(entry.values['resource'])
    if not path.is_file():
        raise MissingResourceError(f"'{entry.name}' should be at {path} but is not: install pyserini-repbert again")
    return path


def package_folder(entry: Entry) -> Path:
    """The folder inside the pip package that an entry names, found without importing it, its checksums verified.

    Raises
    ------
    MissingResourceError
        where the package is not installed, with the command that installs it
    DamagedFileError
        where a file is not the pinned one
    """
    from pyserini_repbert.files import remembered_digest

    source = entry.values['package']
    spec = importlib.util.find_spec(source['module'])
    if spec is None or not spec.submodule_search_locations:
        raise MissingResourceError(
            f"'{entry.name}' comes with the package {source['pip']} ({source['size']}), which is not installed: "
            f'pip install {source["pip"]}'
        )
    folder = Path(spec.submodule_search_locations[0]) / str(source['folder'])
    for name, sha256 in entry.values['sha256'].items():
        if not (folder / name).is_file() or remembered_digest(folder / name, cache_folder()) != sha256:
            raise DamagedFileError(
                f"{folder / name} is not the file that '{entry.name}' was measured with (sha256 {sha256[:12]}…): "
                f'pip install --force-reinstall {source["pip"]}'
            )
    return folder

"""Names that a user may type, resolved through `catalog.toml`, never guessed from a path."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.errors import (
    DamagedFileError,
    MissingResourceError,
    UnknownNameError,
    extra_to_install,
)
from pyserini_repbert.extension_words import missing_extension

RESOURCES = Path(__file__).parent / 'resources'
CHECKPOINT_KINDS = ('bases', 'encoders', 'rerankers')
KINDS = (*CHECKPOINT_KINDS, 'sparse', 'collections', 'indexes', 'topics', 'qrels')


@dataclass(frozen=True)
class Entry:
    """One name of the catalog: `values` are its fields in catalog.toml."""

    kind: str
    name: str
    values: Mapping[str, Any]


def entries(kind: str) -> dict[str, Entry]:
    """All entries of a kind, in the catalog's order."""
    return _shipped()[kind]


@cache
def _shipped() -> dict[str, dict[str, Entry]]:
    import tomllib

    content = tomllib.loads(Path(__file__).with_suffix('.toml').read_text(encoding='utf-8'))
    shipped: dict[str, dict[str, Entry]] = {}
    for kind in KINDS:
        shipped[kind] = {name: Entry(kind, name, values) for name, values in content[kind].items()}
    return shipped


def find(kind: str, name: str) -> Entry | None:
    """The entry, or None."""
    return entries(kind).get(name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean …?)' with the nearest known names, or ''."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    if not near:
        return ''
    return f' (did you mean {" or ".join(map(repr, near))}?)'


def get(kind: str, name: str) -> Entry:
    """The entry. Raises UnknownNameError with the nearest names."""
    known = entries(kind)
    if name not in known:
        advice = missing_extension(name)
        if advice:
            raise UnknownNameError(f"'{name}' is not one of the catalog's {kind}{advice}")
        raise UnknownNameError(
            f"'{name}' is neither one of the catalog's {kind}{did_you_mean(name, known)} nor an "
            f'existing path: known are {", ".join(known)}'
        )
    return known[name]


def checkpoint_kind(name: str) -> str | None:
    """The kind under which the catalog has a checkpoint of this name, or None."""
    for kind in CHECKPOINT_KINDS:
        if find(kind, name):
            return kind
    return None


def base(entry: Entry) -> Entry | None:
    """The entry of the checkpoint that an adapter's entry names as its base.

    None for an entry that is not an adapter.
    """
    name = entry.values.get('base', '')
    kind = checkpoint_kind(name)
    return find(kind, name) if kind else None


def file(kind: str, name: str) -> Path | None:
    """The file of an entry that ships with this package.

    None if the catalog has no such name.
    """
    entry = find(kind, name)
    return None if entry is None else resource(entry)


def resource(entry: Entry) -> Path:
    """The path of an entry's `resource`: a file, or a checkpoint folder.

    The checksums of its files are verified.
    """
    path = RESOURCES / str(entry.values['resource'])
    again = 'install pyserini-repbert again'
    if not path.exists():
        raise MissingResourceError(f"'{entry.name}' should be at {path} but is not: {again}")
    _verify(entry, path, again)
    return path


def package_folder(entry: Entry) -> Path:
    """The folder inside the pip package that an entry names.

    The package is not imported; the checksums of the folder's files are verified. If the package is
    not installed, raises MissingResourceError with the command that installs it.
    """
    source = entry.values['package']
    spec = importlib.util.find_spec(source['module'])
    if spec is None or not spec.submodule_search_locations:
        raise MissingResourceError(
            f"'{entry.name}' comes with the package {source['pip']} ({source['size']}), which is "
            f'not installed: {install_command(entry)}'
        )
    folder = Path(spec.submodule_search_locations[0]) / str(source['folder'])
    _verify(entry, folder, f'pip install --force-reinstall {source["pip"]}')
    return folder


def install_command(entry: Entry) -> str:
    """The command that installs the package of an entry."""
    source = entry.values['package']
    extra = source.get('extra')
    wanted = extra_to_install(extra) if extra else source['pip']
    return f'pip install {wanted}'


def _verify(entry: Entry, folder: Path, advice: str) -> None:
    """Compare the files of a folder with the checksums that the entry pins.

    A checksum is remembered as long as the file does not change.
    """
    for name, sha256 in entry.values.get('sha256', {}).items():
        path = folder / name
        if not path.is_file() or remembered_digest(path) != sha256:
            raise DamagedFileError(
                f"{path} is not the file that '{entry.name}' was measured with (sha256 "
                f'{sha256[:12]}…): {advice}'
            )

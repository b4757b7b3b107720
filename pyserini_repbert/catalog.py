"""Names that a user may type, resolved through `catalog.yaml`, never guessed from a path."""

from __future__ import annotations

import difflib
import importlib.util
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NotRequired, get_args

from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.errors import DamagedFileError, MissingResourceError, UnknownNameError

RESOURCES = Path(__file__).parent / 'resources'
CHECKPOINT_KINDS = ('bases', 'encoders', 'rerankers')
Kind = Literal['bases', 'encoders', 'rerankers', 'sparse', 'collections', 'indexes', 'topics', 'qrels']
KINDS = get_args(Kind)


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


class _Address(TypedDict):
    file: str
    address: str
    size: str
    md5: str


class _Package(TypedDict):
    pip: str
    module: str
    folder: str
    size: str


class _Hub(TypedDict):
    repository: str
    size: str
    revision: NotRequired[str]


class _Values(TypedDict):
    """The fields of an entry that are used whatever its kind."""

    description: str
    base: NotRequired[str]
    build: NotRequired[str]
    collection: NotRequired[str]
    convert: NotRequired[str]
    dimension: NotRequired[int]
    download: NotRequired[_Address]
    encoder: NotRequired[str]
    hub: NotRequired[_Hub]
    indexes: NotRequired[dict[str, str]]
    member: NotRequired[str]
    package: NotRequired[_Package]
    passages: NotRequired[int]
    ranking: NotRequired[dict[str, str | int | bool]]
    resource: NotRequired[str]
    settings: NotRequired[dict[str, str | int | float | bool]]
    sha256: NotRequired[dict[str, str]]
    variant: NotRequired[str]
    vectors: NotRequired[str]
    warning: NotRequired[str]


def entries(kind: str) -> dict[str, Entry]:
    """All entries of a kind, in the catalog's order."""
    return _shipped()[kind]


@cache
def _shipped() -> dict[str, dict[str, Entry]]:
    return read_catalog(Path(__file__).with_suffix('.yaml'))


def read_catalog(path: Path) -> dict[str, dict[str, Entry]]:
    """The entries of a catalog file by kind and name. Raises DamagedFileError for one that is not whole."""
    import yaml
    from pydantic import TypeAdapter, ValidationError

    try:
        content = yaml.safe_load(path.read_text(encoding='utf-8'))
        TypeAdapter(dict[Kind, dict[str, _Values]]).validate_python(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = f'{".".join(map(str, first["loc"]))}: {first["msg"]}'
        raise DamagedFileError(f'{path} is damaged ({why}): install pyserini-repbert again') from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        why = ' '.join(str(error).split())
        raise DamagedFileError(f'{path} is damaged ({why}): install pyserini-repbert again') from error
    return {kind: {name: Entry(kind, name, own) for name, own in content.get(kind, {}).items()} for kind in KINDS}


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


def checkpoint_kind(name: str) -> str | None:
    """The kind under which the catalog has a checkpoint of this name, or None."""
    return next((kind for kind in CHECKPOINT_KINDS if find(kind, name)), None)


def base(entry: Entry) -> Entry | None:
    """The entry of the checkpoint that an adapter's entry names as its base; None if not an adapter."""
    name = entry.values.get('base')
    kind = checkpoint_kind(name) if name else None
    return find(kind, name) if name and kind else None


def file(kind: str, name: str) -> Path | None:
    """The file of an entry that ships with this package, or None where the catalog has no such name."""
    entry = find(kind, name)
    return None if entry is None else resource(entry)


def resource(entry: Entry) -> Path:
    """The path of an entry's `resource`: a file, or a checkpoint folder, whose files' checksums are verified.

    Raises
    ------
    MissingResourceError
        where the installation lacks it
    DamagedFileError
        where a file is not the pinned one
    """
    path = RESOURCES / str(entry.values['resource'])
    again = 'install pyserini-repbert again'
    if not path.exists():
        raise MissingResourceError(f"'{entry.name}' should be at {path} but is not: {again}")
    _verify(entry, path, again)
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
    source = entry.values['package']
    spec = importlib.util.find_spec(source['module'])
    if spec is None or not spec.submodule_search_locations:
        raise MissingResourceError(
            f"'{entry.name}' comes with the package {source['pip']} ({source['size']}), which is not installed: "
            f'pip install {source["pip"]}'
        )
    folder = Path(spec.submodule_search_locations[0]) / str(source['folder'])
    _verify(entry, folder, f'pip install --force-reinstall {source["pip"]}')
    return folder


def _verify(entry: Entry, folder: Path, advice: str) -> None:
    """Compare the files of a folder with the checksums that the entry pins (remembered while a file stays as it is)."""
    from pyserini_repbert.files import remembered_digest

    for name, sha256 in entry.values.get('sha256', {}).items():
        if not (folder / name).is_file() or remembered_digest(folder / name, cache_folder()) != sha256:
            raise DamagedFileError(
                f"{folder / name} is not the file that '{entry.name}' was measured with (sha256 {sha256[:12]}…): "
                f'{advice}'
            )

"""What stands in an index folder: `manifest.json`, and `shard.json` in each shard; both checked when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath, atomic_file, remembered_digest

MANIFEST = 'manifest.json'
SETTINGS = 'encoding.json'  # in a folder that is being filled
SHARD = 'shard.json'
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ShardRecord:
    """A shard: its folder's name, how many passages it holds, the sha256 of its files and of the passages put in."""

    folder: str
    count: int
    corpus_sha256: str
    files: Mapping[str, str]


class BundleSettings(Protocol):
    """What the settings of every kind of bundle have."""

    kind: ClassVar[str]

    @property
    def texts(self) -> bool:
        """Whether the passages' texts are stored."""


@dataclass(frozen=True)
class Settings:
    """How the vectors of a dense bundle were made: what a searcher needs to know, and a resumed run has to share.

    Attributes
    ----------
    encoder, weights_sha256 : the checkpoint's name and the checksum of its weights
    pooling : how token vectors became one ('mean': RepBERT eq. 2)
    max_length : wordpieces kept of a passage
    dimension, dtype : of the stored vectors
    precision : in which the model ran
    shard_size : passages in a shard
    texts : whether the passages' texts are stored
    """

    kind: ClassVar[str] = 'dense'

    encoder: str
    weights_sha256: str
    pooling: str
    max_length: int
    dimension: int
    dtype: str
    precision: str
    shard_size: int
    texts: bool


@dataclass(frozen=True)
class EpicSettings:
    """How the vectors of an EPIC bundle were made and are stored.

    Attributes
    ----------
    encoder, weights_sha256 : the checkpoint's name and the checksum of its weights
    variant : of EPIC's equations
    vocabulary, vocabulary_sha256 : how many terms the vectors are over, and the checksum of their names
    max_length : wordpieces kept of a passage
    prune : how many of a passage's largest weights are kept, 0 for all
    weights : 'float16' or 'uint8'
    precision : in which the model ran
    shard_size : passages in a shard
    texts : whether the passages' texts are stored
    layout : 'all', a row of weights for the whole vocabulary; or 'blocks', described in `index/epic.py`
    """

    kind: ClassVar[str] = 'epic'

    encoder: str
    weights_sha256: str
    variant: str
    vocabulary: int
    vocabulary_sha256: str
    max_length: int
    prune: int
    weights: str
    precision: str
    shard_size: int
    texts: bool
    layout: str


_AnySettings = TypeVar('_AnySettings', bound='BundleSettings')
_Record = TypeVar('_Record')


@dataclass(frozen=True)
class Manifest(Generic[_AnySettings]):
    """A whole bundle: its settings and its shards, in order."""

    settings: _AnySettings
    count: int
    shards: tuple[ShardRecord, ...]
    kind: str
    format_version: int = FORMAT_VERSION


def write_json(path: Path, record: Any) -> None:
    """Write a dataclass, atomically and always with the same bytes."""
    with atomic_file(path) as stream:
        stream.write(json.dumps(asdict(record), indent=1, ensure_ascii=False) + '\n')


def read_record(path: Path, kind: type[_Record]) -> _Record:
    """Read a record of the given kind. Raises DamagedFileError for anything else."""
    return _made(kind, _load(path), path)


def manifest_kind(folder: StrPath) -> str:
    """The kind of the bundle in a folder, 'dense' where there is no manifest that names another."""
    path = Path(folder) / MANIFEST
    return str(_load(path).get('kind', Settings.kind)) if path.is_file() else Settings.kind


def read_manifest(folder: StrPath, settings: type[_AnySettings]) -> Manifest[_AnySettings]:
    """The manifest of an index folder of the kind that has these settings.

    Raises
    ------
    InputError
        where there is no index, or an unfinished one
    MismatchError
        where it is of another kind
    DamagedFileError
        where the manifest cannot be understood
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        unfinished = any(Path(folder).glob('shard-*')) or (Path(folder) / SETTINGS).is_file()
        if unfinished:
            raise InputError(f'index {folder} is not finished: run the command that began it again, with --resume')
        raise InputError(f"'{folder}' is not an index folder: expected {path}, or Pyserini's files 'index' and 'docid'")
    values = _load(path)
    if values.get('format_version') != FORMAT_VERSION:
        raise DamagedFileError(
            f'{path} has format version {values.get("format_version")}, this release reads {FORMAT_VERSION}: '
            'build the index again, or use the release that built it'
        )
    shards = tuple(_made(ShardRecord, shard, path) for shard in values.get('shards', ()))
    kind = values.get('kind', Settings.kind)
    if kind != settings.kind:
        raise MismatchError(f"index {folder} is of kind '{kind}', one of kind '{settings.kind}' was expected")
    made = _made(settings, values.get('settings', {}), path)
    manifest = Manifest(made, int(values.get('count', -1)), shards, settings.kind)
    if manifest.count != sum(shard.count for shard in shards):
        raise DamagedFileError(f'{path}: its shards do not add up to its count: build the index again')
    return manifest


def verify_files(folder: Path, record: ShardRecord) -> None:
    """Compare a shard's files with their sha256 (remembered while a file does not change). Raises DamagedFileError."""
    for name, sha256 in record.files.items():
        path = folder / name
        if not path.is_file():
            raise DamagedFileError(f'{path} is missing: build the index again, or restore the file')
        found = remembered_digest(path, catalog.cache_folder())
        if found != sha256:
            raise DamagedFileError(
                f'{path} is damaged: its sha256 is {found[:12]}…, its manifest says {sha256[:12]}…: '
                'restore the file, or build the index again'
            )


def _load(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise DamagedFileError(f'{path} is not JSON ({error}): build the index again') from error
    if not isinstance(values, dict):
        raise DamagedFileError(f'{path} is not a JSON object: build the index again')
    return values


def _made(kind: type[_Record], values: Mapping[str, Any], path: Path) -> _Record:
    try:
        return kind(**values)
    except TypeError as error:
        raise DamagedFileError(f'{path} is not of this format ({error}): build the index again') from error

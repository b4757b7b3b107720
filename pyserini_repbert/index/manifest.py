"""What stands in an index folder: `manifest.json`, and `shard.json` in each shard; both checked when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath, atomic_file, remembered_digest

MANIFEST = 'manifest.json'
SHARD = 'shard.json'
FORMAT_VERSION = 1


@dataclass(frozen=True)
class ShardRecord:
    """A shard: its folder's name, how many passages it holds, the sha256 of its files and of the passages put in."""

    folder: str
    count: int
    corpus_sha256: str
    files: Mapping[str, str]


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
class Manifest:
    """A whole dense bundle: its settings and its shards, in order."""

    settings: Settings
    count: int
    shards: tuple[ShardRecord, ...]
    format_version: int = FORMAT_VERSION


_Record = TypeVar('_Record', Settings, ShardRecord)


def write_json(path: Path, record: Settings | ShardRecord | Manifest) -> None:
    """Write a record, atomically and always with the same bytes."""
    with atomic_file(path) as stream:
        stream.write(json.dumps(asdict(record), indent=1, ensure_ascii=False) + '\n')


def read_record(path: Path, kind: type[_Record]) -> _Record:
    """Read a Settings or a ShardRecord. Raises DamagedFileError for anything else."""
    return _made(kind, _load(path), path)


def read_manifest(folder: StrPath) -> Manifest:
    """The manifest of an index folder.

    Raises
    ------
    InputError
        where there is no index, or an unfinished one
    DamagedFileError
        where the manifest cannot be understood
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        unfinished = any(Path(folder).glob('shard-*')) or (Path(folder) / 'encoding.json').is_file()
        if unfinished:
            raise InputError(f'index {folder} is not finished: run the encode command again with --resume')
        raise InputError(f"'{folder}' is not an index folder: expected {path}, or Pyserini's files 'index' and 'docid'")
    values = _load(path)
    if values.get('format_version') != FORMAT_VERSION:
        raise DamagedFileError(
            f'{path} has format version {values.get("format_version")}, this release reads {FORMAT_VERSION}: '
            'build the index again, or use the release that built it'
        )
    shards = tuple(_made(ShardRecord, shard, path) for shard in values.get('shards', ()))
    manifest = Manifest(_made(Settings, values.get('settings', {}), path), int(values.get('count', -1)), shards)
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

"""Reading and writing the records of an index folder.

They are `manifest.json`, and `shard.json` in each shard. The manifest's last entry is the sha256 of
all bytes before the comma that precedes this entry.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pyserini_repbert.checksums import compare_digest
from pyserini_repbert.data.values import adapter
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.index.records import (
    FORMAT_VERSION,
    MODEL_DIGESTS,
    DenseSettings,
    Manifest,
    SettingsT,
    ShardRecord,
    TermWeightsSettings,
)

logger = logging.getLogger(__name__)

MANIFEST = 'manifest.json'
# The SQLite file of a collection.
COLLECTION_FILE = 'collection.sqlite'
SETTINGS = 'encoding.json'  # in a folder that is being filled
PART = 'part-'  # prefix of the folders that hold the parts of an unfinished index
SHARD = 'shard.json'
# Entries of a record that are left out if they are None.
_LEFT_OUT = (*MODEL_DIGESTS, 'overlap')
_SIGNED = re.compile(rb'(.*),\n "sha256": "([0-9a-f]{64})"\n\}\n', re.DOTALL)

_Record = TypeVar('_Record')


def rendered(record: Any) -> str:
    """A record as the text of its file; equal records give equal bytes.

    A checksum or an overlap of None is left out.
    """
    return json.dumps(asdict(record, dict_factory=_known), indent=1, ensure_ascii=False) + '\n'


def _known(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if value is not None or name not in _LEFT_OUT}


def write_json(path: Path, record: Any, is_signed: bool = False) -> None:
    """Write a record, atomically where the file system can rename.

    A signed one ends with its own checksum.
    """
    with atomic_file(path) as stream:
        stream.write(signed(record) if is_signed else rendered(record))


def signed(record: Any) -> str:
    """A record as the text of its file, its own checksum at the end."""
    body = rendered(record).removesuffix('\n}\n')
    return f'{body},\n "sha256": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def _unsigned(raw: bytes, path: Path) -> bytes:
    """A signed record without its checksum.

    Raises DamagedFileError if the checksum does not match.
    """
    match = _SIGNED.fullmatch(raw)
    if match is None or hashlib.sha256(match[1]).hexdigest() != match[2].decode('ascii'):
        raise DamagedFileError(
            f'{path} is damaged, its checksum does not fit: restore the file, or '
            'build the index again'
        )
    return match[1] + b'\n}\n'


def read_record(path: Path, kind: type[_Record], is_signed: bool = False) -> _Record:
    """Read a record of the given kind. If it is signed, its checksum is compared."""
    raw = _bytes(path)
    return _parsed(kind, _unsigned(raw, path) if is_signed else raw, path)  # type: ignore[no-any-return]


def manifest_kind(folder: StrPath) -> str:
    """The kind of the bundle in a folder; 'dense' if no manifest names another."""
    path = Path(folder) / MANIFEST
    values = _parsed(dict[str, Any], _bytes(path), path) if path.is_file() else {}
    return str(values.get('kind', DenseSettings.kind))


def read_manifest(folder: StrPath, settings: type[SettingsT]) -> Manifest[SettingsT]:
    """The manifest of an index folder, which must have the kind of `settings`.

    A manifest of format version 1 has no checksum of itself; it is read with a warning.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise missing_manifest(folder)
    raw = _bytes(path)
    values = _parsed(dict[str, Any], raw, path)
    version = values.get('format_version')
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise DamagedFileError(
            f'{path} has format version {_short(version)}, this release reads 1 to '
            f'{FORMAT_VERSION}: build the index again, or use the release that built it'
        )
    body = _unsigned(raw, path) if version > 1 else raw
    kind = values.get('kind', DenseSettings.kind if version == 1 else None)
    if kind != settings.kind:
        expected = f"one of kind '{settings.kind}' was expected"
        raise MismatchError(f"{path}: the index is of kind '{_short(kind)}', {expected}")
    manifest: Manifest[SettingsT] = _parsed(Manifest[settings], body, path)  # type: ignore[valid-type]
    wrong = manifest.contradiction()
    if wrong:
        raise DamagedFileError(f'{path}: {wrong}: build the index again')
    if version == 1:
        _warn_of_version_1(path.absolute())
    return manifest


def variant_of_parts(output: StrPath) -> str | None:
    """The model of term weights whose parts an unfinished index has, as
    `TermWeightsSettings.variant`; None for parts of another index, and if there are none.
    """
    for part in sorted(Path(output).glob(f'{PART}*')):
        if (part / MANIFEST).is_file() and manifest_kind(part) == TermWeightsSettings.kind:
            return read_manifest(part, TermWeightsSettings).settings.variant
    return None


def is_collection(folder: Path) -> bool:
    """Whether a folder is a collection (`collection.Collection`)."""
    return (folder / COLLECTION_FILE).is_file()


def missing_manifest(folder: StrPath) -> InputError:
    """The error for a folder without a manifest: what the folder is instead, and what to do."""
    if any(Path(folder).glob(f'{PART}*')):
        advice = 'encode those that are missing, and finish it, or wait until that has ended'
        return InputError(f'index {folder} is in parts: {advice}', parameters=('finish',))
    if any(Path(folder).glob('shard-*')) or (Path(folder) / SETTINGS).is_file():
        advice = 'resume it with the command that began it'
        return InputError(f'index {folder} is not finished: {advice}', parameters=('resume',))
    from pyserini_repbert.lucene.lucene_form import is_lucene_index

    if is_lucene_index(folder):
        return InputError(
            f"'{folder}' is a Lucene index, an index of vectors was expected: name it as a sparse "
            f'ranking, bm25@{folder}'
        )
    if is_collection(Path(folder)):
        return InputError(
            f"'{folder}' is a collection, an index of vectors was expected: search and adapt take "
            'it as it is'
        )
    return InputError(
        f"'{folder}' is not an index folder: expected {Path(folder) / MANIFEST}, or Pyserini's "
        "files 'index' and 'docid'. To search the documents of a folder, index them first with "
        '`index sync`'
    )


@cache
def _warn_of_version_1(path: Path) -> None:
    """Warn once in a process."""
    logger.warning(
        '%s of an earlier release has no checksum of itself: the command that built it can resume '
        'it',
        path,
    )


def verify_files(folder: Path, record: ShardRecord, remembered: bool = True) -> None:
    """Compare a shard's files with their sha256; `remembered` as in `compare_digest`."""
    for name, sha256 in record.files.items():
        compare_digest(folder / name, sha256, folder.parent / MANIFEST, remembered)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedFileError(
            f'{path} is missing: restore the file, or build the index again'
        ) from error


def _parsed(kind: Any, raw: bytes, path: Path) -> Any:
    try:
        return adapter(kind).validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = '.'.join(str(part) for part in first['loc'])
        wrong = first['msg']
        if first['type'] == 'missing':
            wrong = f'{key} is missing'
        elif key:
            wrong = f'{key} is {_short(first["input"])}: {wrong}'
        message = f'{path} is not of this format: {wrong}'
        raise DamagedFileError(f'{message}: restore the file, or build the index again') from error


def _short(value: object) -> str:
    text = ' '.join(str(value).split())
    return text if len(text) <= 60 else f'{text[:60]}…'

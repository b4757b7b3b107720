"""Generations: what a collection holds at one moment, as its manifest says.

`generations/000007.json` names the shards of generation 7, their dead rows, and its Lucene folder.
It is published once `collection.sqlite` names it with its checksum.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, StringConstraints, ValidationError
from pydantic.dataclasses import dataclass

from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.shards import ShardName, sync_to_disk
from pyserini_repbert.data.values import adapter
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.records import Count

GENERATIONS = 'generations'
LUCENE = 'lucene'
_Natural = Annotated[int, Field(ge=0, le=2**48)]
_Digest = Annotated[str, Field(pattern='^[0-9a-f]{32}$')]
_CONFIG = ConfigDict(extra='forbid', defer_build=True)
# A shard's dead rows are ranges, up to so many, or to one for so many rows: bits take less then.
_MOST_RANGES = 64
_ROWS_OF_RANGE = 256
_ADVICE = 'restore the file from a copy, or build the collection again'


@dataclass(frozen=True, config=_CONFIG)
class ShardOfGeneration:
    """A shard and its dead rows.

    Attributes
    ----------
    name : of the shard
    rows : how many it has
    dead : its dead rows, as (first row, number of rows) of each range of them
    dead_bits : instead of many ranges, a bit for each row, the first one highest, in base64
    """

    name: ShardName
    rows: Count
    dead: tuple[tuple[_Natural, Count], ...] = ()
    dead_bits: str | None = None

    @classmethod
    def of(cls, name: str, rows: int, dead: NDArray[np.int64]) -> ShardOfGeneration:
        """A shard with its dead rows, in ascending order."""
        ranges = ranges_of(dead)
        if len(ranges) <= max(_MOST_RANGES, rows // _ROWS_OF_RANGE):
            return cls(name, rows, ranges)
        is_dead = np.zeros(rows, np.bool_)
        is_dead[dead] = True
        bits = np.packbits(is_dead).tobytes()
        return cls(name, rows, dead_bits=base64.b64encode(bits).decode())

    @property
    def n_dead(self) -> int:
        """How many rows are dead."""
        mask = self.live_mask()
        return 0 if mask is None else len(mask) - int(np.count_nonzero(mask))

    def live_mask(self) -> NDArray[np.bool_] | None:
        """Whether each row counts, bool (n,); None if all do.

        Raises DamagedFileError for bits that do not fit so many rows.
        """
        if self.dead_bits is not None:
            return ~self._unpacked(self.dead_bits)
        if not self.dead:
            return None
        mask = np.ones(self.rows, np.bool_)
        for first, count in self.dead:
            mask[first : first + count] = False
        return mask

    def _unpacked(self, text: str) -> NDArray[np.bool_]:
        try:
            packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
        except ValueError:
            packed = np.empty(0, np.uint8)
        if len(packed) != -(-self.rows // 8):
            raise DamagedFileError(
                f'a manifest does not say which rows of shard {self.name} are dead: {_ADVICE}'
            )
        return np.unpackbits(packed, count=self.rows).view(np.bool_)


@dataclass(frozen=True, config=_CONFIG, kw_only=True)
class GenerationManifest:
    """A generation, as its file has it."""

    number: Count
    settings: CollectionSettings
    documents: _Natural  # live ones, those without text included
    passages: _Natural
    shards: tuple[ShardOfGeneration, ...] = ()
    # The name of the folder in `lucene/`.
    lucene: Annotated[str, StringConstraints(pattern=r'^[0-9]{6,}\z')] | None = None
    lucene_documents: _Natural = 0
    lucene_dead: _Natural = 0  # deleted documents that Lucene still counts
    # The collection's, which a copy shares.
    identity: _Digest
    # Of the tables about sources, of the documents' docids and sources, and of the documents'
    # locations in their sources.
    sources_sha256: Annotated[str, Field(pattern='^[0-9a-f]{64}$')]
    owners_digest: _Digest
    origins_digest: _Digest
    format_version: Annotated[int, Field(ge=1, le=1)] = 1

    def rendered(self) -> bytes:
        """The bytes of the manifest's file."""
        values = asdict(self)
        for shard in values['shards']:
            # One of the two says which rows are dead.
            del shard['dead_bits' if shard['dead_bits'] is None else 'dead']
        settings: dict[str, Any] = {}
        for name, value in values['settings'].items():
            # Further models stand beside the other settings.
            settings |= value if name == 'further' else {name: value}
        values['settings'] = settings
        if self.settings.dtype == 'float32':
            # As before there were others.
            del values['settings']['dtype']
        return (json.dumps(values, indent=1) + '\n').encode()


@dataclass(frozen=True)
class Published:
    """A published generation's number, and the sha256 of its manifest."""

    number: int
    manifest_sha256: str


def generation_name(number: int) -> str:
    """'000007'"""
    return f'{number:06d}'


def manifest_path(folder: Path, number: int) -> Path:
    """The path of a generation's manifest."""
    return folder / GENERATIONS / f'{generation_name(number)}.json'


def last_published(connection: sqlite3.Connection) -> Published | None:
    """The newest generation; None if there is none.

    Raises sqlite3.DatabaseError for a row that is not a generation.
    """
    row = connection.execute(
        'SELECT number, manifest_sha256 FROM generations ORDER BY number DESC LIMIT 1'
    ).fetchone()
    if row is None:
        return None
    try:
        return Published(*row)
    except ValidationError as error:
        raise sqlite3.DatabaseError('a row of the table of generations is damaged') from error


def write_manifest(folder: Path, manifest: GenerationManifest) -> Published:
    """Write a generation's manifest; it is on the disk when this returns."""
    target = manifest_path(folder, manifest.number)
    unfinished = target.with_name(f'.{target.name}')
    content = manifest.rendered()
    unfinished.write_bytes(content)
    sync_to_disk(unfinished)
    os.replace(unfinished, target)
    sync_to_disk(target.parent)
    return Published(manifest.number, hashlib.sha256(content).hexdigest())


def read_manifest(folder: Path, published: Published) -> GenerationManifest:
    """The manifest of a published generation.

    Raises FileNotFoundError if it was removed, DamagedFileError for one that is not intact.
    """
    path = manifest_path(folder, published.number)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != published.manifest_sha256:
        raise DamagedFileError(f'{path} is damaged, its sha256 differs: {_ADVICE}')
    try:
        manifest: GenerationManifest = adapter(GenerationManifest).validate_json(content)
    except ValidationError as error:
        raise DamagedFileError(f'{path} is not the manifest of a generation: {_ADVICE}') from error
    return manifest


def list_manifests(folder: Path) -> list[int]:
    """The numbers of the generations whose manifests are in a collection, in order."""
    numbers = []
    for path in (folder / GENERATIONS).glob('[0-9]*.json'):
        # Not the records of commands beside them.
        if re.fullmatch('[0-9]{6,}', path.stem):
            numbers.append(int(path.stem))
    return sorted(numbers)


def ranges_of(rows: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Ascending rows as (first row, number of rows) of each range."""
    if not len(rows):
        return ()
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    firsts = rows[np.concatenate([[0], breaks])]
    counts = np.diff(np.concatenate([[0], breaks, [len(rows)]]))
    return tuple(zip(firsts.tolist(), counts.tolist(), strict=True))

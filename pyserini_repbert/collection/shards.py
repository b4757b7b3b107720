"""Shards: vectors of passages, written once and never changed.

A shard is a folder named by its digest:

- `vectors.npy`: float32, float16 or int8 (n, d), a passage's vector in each row
- `scales.npy`: float32 (n,), of vectors in int8
- `documents.npy`: int32 (n,), the document's number
- `numbers.npy`: int32 (n,), the passage's number in its document
- `inputs.npy`: uint8 (n, 16), the digest of what the encoder read
- the files of each `Representation` that the collection has (`encode.representations`)
- `shard.json`: the generation that it was written for, the number of rows, the sha256 of each file,
  and what each representation says of its rows
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import ConfigDict, StringConstraints
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.data.values import adapter, parse_json
from pyserini_repbert.encode.representations import Rows
from pyserini_repbert.errors import DamagedFileError, InputError, within_limits
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.index.arrays import check_finite
from pyserini_repbert.index.bundle import mapped
from pyserini_repbert.index.dense import mapped_vectors
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors, stored_as
from pyserini_repbert.index.records import Count, VectorDtype
from pyserini_repbert.record import Sha256
from pyserini_repbert.search.parts import ArrayVectors, IndexPart

SHARDS = 'shards'
INPUT_BYTES = 16  # of the digest of a model's input
_RECORD = 'shard.json'
_NAME_LENGTH = 16  # hexadecimal digits
_NAME = f'[0-9a-f]{{{_NAME_LENGTH}}}'
ShardName = Annotated[str, StringConstraints(pattern=rf'^{_NAME}\z')]
_UNFINISHED = '.unfinished'

# Of each row: the attributes of `ShardRows` and `PassageShard`.
ROW_FILES = ('vectors', 'documents', 'numbers', 'inputs')
_ARRAYS = [*ROW_FILES, 'scales']
for _kind in representations():
    _ARRAYS += _kind.files
_ARRAY_FILE = rf'({"|".join(_ARRAYS)})\.npy'
SHARD_FORM = FolderForm('shard of a collection', (_ARRAY_FILE, re.escape(_RECORD)))

_CONFIG = ConfigDict(strict=True, extra='forbid', defer_build=True)


@checked_dataclass(frozen=True, config=_CONFIG)
class PassageShardRecord:
    """What `shard.json` says of all shards."""

    generation: Count
    rows: Count
    dimension: Count
    files: dict[Annotated[str, StringConstraints(pattern=rf'^{_ARRAY_FILE}\z')], Sha256]
    dtype: VectorDtype = 'float32'  # of the vectors; left out if it is float32


@dataclass(frozen=True)
class _ShardRecord:
    """What `shard.json` says, and by name, what each representation says there of its rows."""

    shard: PassageShardRecord
    further: Mapping[str, Any]

    def names(self) -> set[str]:
        """The names of the files that the shard has."""
        names = set(ROW_FILES)
        if self.shard.dtype == 'int8':
            names.add('scales')
        for kind in representations():
            if kind.name in self.further:
                names.update(kind.work.files_of(self.further[kind.name]))
        return {f'{name}.npy' for name in names}


@dataclass(frozen=True)
class ShardRows:
    """The rows of a shard, each a passage: arrays of one length.

    Vectors that were read from a shard are written to another as the same bytes, whatever their
    type (`index.quantized`).
    """

    vectors: NDArray[np.float32]  # (n, d)
    documents: NDArray[np.int32]  # (n,)
    numbers: NDArray[np.int32]  # (n,)
    inputs: NDArray[np.uint8]  # (n, 16)
    # What further models made of each passage, by `Representation.name`.
    further: Mapping[str, Rows] = field(default_factory=dict)


class PassageShard:
    """A shard, opened: its arrays are mapped when they are first used.

    Small files, which decide what a row is, are then compared with their checksums; vectors and
    what further models made are not, as reading all of them takes long.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        record = _read_record(folder)
        self.record = record.shard
        self._further_records = record.further
        self._further: dict[str, Rows] = {}

    def __len__(self) -> int:
        return self.record.rows

    @cached_property
    def vectors(self) -> StoredVectors:
        """The vectors, (n, d), mapped; of those in int8, the scales are compared."""
        if self.record.dtype == 'int8':
            self._compare('scales.npy')
        return mapped_vectors(self.folder, self.record.dtype, (len(self), self.record.dimension))

    @cached_property
    def part(self) -> IndexPart:
        """The vectors as a part of an index.

        Generations that share the shard also share what is computed from it.
        """
        return IndexPart(ArrayVectors(self.vectors))

    @cached_property
    def documents(self) -> NDArray[np.int32]:
        """The number of each row's document, int32 (n,), mapped and compared."""
        return self._small_array('documents', np.int32)

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The number of each row's passage in its document, int32 (n,), mapped and compared."""
        return self._small_array('numbers', np.int32)

    @cached_property
    def inputs(self) -> NDArray[np.uint8]:
        """The digest of each row's input, uint8 (n, 16), mapped and compared."""
        return self._small_array('inputs', np.uint8, (INPUT_BYTES,))

    def key_of(self, kind: Representation) -> str | None:
        """The `RepresentationModel.key` of a representation's rows; None without any."""
        record = self._further_records.get(kind.name)
        return None if record is None else str(record.model)

    def rows_of(self, kind: Representation) -> Rows:
        """A further model's values of each row, mapped.

        Generations that share the shard also share what is computed from it.

        Raises DamagedFileError if there is nothing.
        """
        if kind.name not in self._further:
            if kind.name not in self._further_records:
                raise DamagedFileError(
                    f'{self.folder} has nothing of the {kind.what}: restore the folder from a '
                    'copy, or build the collection again'
                )
            self._further[kind.name] = kind.work.read(self, self._further_records[kind.name])
        return self._further[kind.name]

    @property
    def _stored_kinds(self) -> list[Representation]:
        return [kind for kind in representations() if kind.name in self._further_records]

    def map_all(self) -> None:
        """Map every file, so that the shard stays readable where another process removes it."""
        for name in ROW_FILES:
            getattr(self, name)
        for kind in self._stored_kinds:
            self.rows_of(kind)

    def verify(self) -> None:
        """Compare every file with its checksum. Raises DamagedFileError for one that differs."""
        for name in self.record.files:
            self._compare(name)

    def differences(self) -> Iterator[str]:
        """A line for each file that is missing or differs from what was written."""
        for name in self.record.files:
            try:
                self._compare(name)
            except DamagedFileError as error:
                yield str(error)

    def check_values(self) -> None:
        """Check vectors, and what further models made, whatever the files' checksums say.

        Raises DamagedFileError for values that no model gives.
        """
        check_finite(self.vectors, self.folder / 'vectors.npy')
        for kind in self._stored_kinds:
            self.rows_of(kind).check(self.folder)

    def _compare(self, name: str) -> None:
        """Compare a file with its checksum."""
        compare_digest(
            self.folder / name, self.record.files[name], self.folder / _RECORD, remembered=False
        )

    def array(
        self, name: str, dtype: DTypeLike, shape: tuple[int, ...], is_compared: bool = False
    ) -> NDArray[Any]:
        """The array of a file, mapped.

        Parameters
        ----------
        name : of the file, without its suffix
        dtype, shape : what the file must hold
        is_compared : compare the file with its checksum
        """
        # PyTorch warns of arrays that cannot be written: 'c' leaves files as they are, too.
        array = mapped(self.folder / f'{name}.npy', dtype, shape, 'r' if is_compared else 'c')
        if is_compared:
            self._compare(f'{name}.npy')
        return array

    def _small_array(
        self, name: str, dtype: DTypeLike, row_shape: tuple[int, ...] = ()
    ) -> NDArray[Any]:
        """The array of a small file, with a value of `row_shape` for each row."""
        return self.array(name, dtype, (len(self), *row_shape), is_compared=True)


def open_shard(parent: Path, name: str) -> PassageShard:
    """The shard of a name in the folder `parent`.

    Raises DamagedFileError for a name that no shard has, which could lead out of the folder.
    """
    if not re.fullmatch(_NAME, name):
        raise DamagedFileError(
            f"{parent} cannot have a shard '{name}': restore the collection from a copy, or build "
            'it again'
        )
    return PassageShard(parent / name)


def write_shard(
    parent: Path, rows: ShardRows, generation: int, dtype: str = 'float32'
) -> PassageShard:
    """Write a shard into the folder `parent`; it is on the disk when this returns.

    The caller holds the lock of the collection's writer.

    Parameters
    ----------
    parent : of the shards
    rows : the rows that it holds
    generation : that it is written for
    dtype : the type in which vectors are stored

    Raises DamagedFileError for a vector that is not finite in this type.
    """
    folder = parent / _UNFINISHED
    SHARD_FORM.remove(folder)
    with within_limits(parent):
        folder.mkdir(parents=True)
        name = _write_files(folder, rows, generation, dtype)
        target = parent / name
        if target.exists():
            SHARD_FORM.remove(folder)
        else:
            folder.rename(target)
        sync_to_disk(parent)
    return PassageShard(target)


def _write_files(folder: Path, rows: ShardRows, generation: int, dtype: str) -> str:
    """Write the files of a shard, and return its name."""
    files = _write_arrays(folder, _arrays_of(rows, dtype))
    record: dict[str, Any] = {
        'generation': generation,
        'rows': len(rows.documents),
        'dimension': int(rows.vectors.shape[1]),
        'files': files,
    }
    for name, further in rows.further.items():
        files |= _write_arrays(folder, further.arrays())
        record[name] = further.record()
    if dtype != 'float32':
        record['dtype'] = dtype
    content = json.dumps(record, indent=1, sort_keys=True) + '\n'
    (folder / _RECORD).write_text(content, encoding='utf-8')
    for path in (*folder.iterdir(), folder):
        sync_to_disk(path)
    return _name_of(content.encode())


def _write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Write arrays, and return the digests of their files by name."""
    digests = {}
    for name, array in arrays.items():
        path = folder / f'{name}.npy'
        np.save(path, array)
        digests[path.name] = digest(path)
    return digests


def _arrays_of(rows: ShardRows, dtype: str) -> dict[str, NDArray[Any]]:
    """What the files of a shard hold, by their names.

    Raises DamagedFileError for a vector that is not finite.
    """
    arrays = {name: getattr(rows, name) for name in ROW_FILES}
    vectors = stored_as(rows.vectors, dtype)
    is_finite = np.isfinite(np.asarray(vectors)).all(axis=1)
    if not is_finite.all():
        raise DamagedFileError(
            f'the vector of a passage of document number {rows.documents[~is_finite][0]} is not '
            f'finite in {dtype}: check the checkpoint, or store and compute in float32'
        )
    if isinstance(vectors, Int8Vectors):
        return {**arrays, 'vectors': vectors.numbers, 'scales': vectors.scales}
    return {**arrays, 'vectors': vectors}


def _name_of(record: bytes) -> str:
    return hashlib.sha256(record).hexdigest()[:_NAME_LENGTH]


def is_shard_name(name: str) -> bool:
    """Whether a shard can have this name."""
    return re.fullmatch(_NAME, name) is not None


def list_shards(parent: Path) -> list[str]:
    """The names of the shards in a folder, in order."""
    if not parent.is_dir():
        return []
    return sorted(path.name for path in parent.iterdir() if not path.name.startswith('.'))


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read_record(folder: Path) -> _ShardRecord:
    path = folder / _RECORD
    again = 'restore the folder from a copy, or build the collection again'
    try:
        content = path.read_bytes()
        record = _parse_record(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedFileError(f'{path} is missing: {again}') from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f'{path} is not the record of a shard: {again}') from error
    if _name_of(content) != folder.name:
        raise DamagedFileError(f'{path} is damaged, its digest is not {folder.name}: {again}')
    if set(record.shard.files) != record.names():
        raise DamagedFileError(f'{path} does not name the files of a shard: {again}')
    return record


def _parse_record(content: bytes) -> _ShardRecord:
    """Raises ValueError for anything but a shard's record."""
    values = parse_json(content.decode())
    if not isinstance(values, dict):
        raise ValueError('no object')
    further = {
        kind.name: _checked(values.pop(kind.name), kind.work.record_type)
        for kind in representations()
        if kind.name in values
    }
    for name, value in values.items():
        if name != 'files' and isinstance(value, dict):
            raise InputError(
                f"a shard of the collection has '{name}' of its passages, which no extension that "
                f'is installed stores{missing_extension(name)}'
            )
    return _ShardRecord(_checked(values, PassageShardRecord), further)


def _checked(values: Any, record_type: type) -> Any:
    """Values of JSON as a record. Raises ValueError for others."""
    return adapter(record_type).validate_json(json.dumps(values))

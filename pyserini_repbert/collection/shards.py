"""Shards: vectors of passages, written once and never changed.

A shard is a folder named by its digest:

- `vectors.npy`: float32, float16 or int8 (n, d), a passage's vector in each row
- `scales.npy`: float32 (n,), of vectors in int8
- `documents.npy`: int32 (n,), the document's number
- `numbers.npy`: int32 (n,), the passage's number in its document
- `inputs.npy`: uint8 (n, 16), the digest of what the encoder read
- `offsets.npy`, `terms.npy`, `weights.npy`: of a collection with a learned sparse model, see
  `term_rows`
- `shard.json`: the generation that it was written for, the number of rows, the sha256 of each file
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.collection.term_rows import TERM_FILES, TermRows, term_dtype
from pyserini_repbert.errors import DamagedFileError, within_limits
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.index.arrays import check_finite, check_offsets, check_terms
from pyserini_repbert.index.bundle import mapped
from pyserini_repbert.index.dense import mapped_vectors
from pyserini_repbert.index.postings import PostingsBlock, rows_together
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors, stored_as
from pyserini_repbert.index.records import Count, VectorDtype
from pyserini_repbert.record import Sha256
from pyserini_repbert.search.parts import ArrayVectors, IndexPart

SHARDS = 'shards'
SHARD_ROWS = 65_536  # at most, in a shard that is written when others are put together
INPUT_BYTES = 16  # of the digest of a model's input
_RECORD = 'shard.json'
_NAME_LENGTH = 16  # hexadecimal digits
_NAME = f'[0-9a-f]{{{_NAME_LENGTH}}}'
ShardName = Annotated[str, StringConstraints(pattern=rf'^{_NAME}\z')]
_UNFINISHED = '.unfinished'

# Of each row: the attributes of `ShardRows` and `PassageShard`.
ROW_FILES = ('vectors', 'documents', 'numbers', 'inputs')
_ARRAY_FILE = rf'({"|".join((*ROW_FILES, "scales", *TERM_FILES))})\.npy'
SHARD_FORM = FolderForm('shard of a collection', (_ARRAY_FILE, re.escape(_RECORD)))

_CONFIG = ConfigDict(strict=True, extra='forbid')


@checked_dataclass(frozen=True, config=_CONFIG)
class TermsRecord:
    """What `shard.json` says of the weights of terms."""

    model: Sha256  # the `SparseModel.key`
    vocabulary: Count
    total: Annotated[int, Field(ge=0)]  # how many weights there are


@checked_dataclass(frozen=True, config=_CONFIG)
class PassageShardRecord:
    """What `shard.json` says."""

    generation: Count
    rows: Count
    dimension: Count
    files: dict[Annotated[str, StringConstraints(pattern=rf'^{_ARRAY_FILE}\z')], Sha256]
    terms: TermsRecord | None = None  # left out where a shard has none
    dtype: VectorDtype = 'float32'  # of the vectors; left out where it is float32

    def names(self) -> set[str]:
        """The names of the files that the shard has."""
        names = set(ROW_FILES)
        if self.dtype == 'int8':
            names.add('scales')
        if self.terms is not None:
            names.update(TERM_FILES)
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
    terms: TermRows | None = None  # weights of terms, where the collection has a model for them


class PassageShard:
    """A shard, opened: its arrays are mapped when they are first used.

    Small files, which decide what a row is, are then compared with their checksums; vectors and
    weights of terms are not, as reading all of them takes long.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.record = _read_record(folder)

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
        """The vectors as a part of an index: generations that share the shard share what is
        computed of it.
        """
        return IndexPart(ArrayVectors(self.vectors))

    @cached_property
    def documents(self) -> NDArray[np.int32]:
        """The number of each row's document, int32 (n,), mapped and compared."""
        return self._array('documents', np.int32)

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The number of each row's passage in its document, int32 (n,), mapped and compared."""
        return self._array('numbers', np.int32)

    @cached_property
    def inputs(self) -> NDArray[np.uint8]:
        """The digest of each row's input, uint8 (n, 16), mapped and compared."""
        return self._array('inputs', np.uint8, (INPUT_BYTES,))

    @cached_property
    def terms(self) -> TermRows:
        """The weights of terms of each row, mapped.

        Raises DamagedFileError where there are none.
        """
        record = self.record.terms
        if record is None:
            raise DamagedFileError(
                f'{self.folder} has no weights of terms: restore the folder from a copy, or build '
                'the collection again'
            )
        total = (record.total,)
        dtype = term_dtype(record.vocabulary)
        offsets = self._array('offsets', np.int64, n_more=1)
        check_offsets(offsets, record.total, self.folder / 'offsets.npy')
        return TermRows(
            model=record.model,
            vocabulary=record.vocabulary,
            offsets=offsets,
            terms=mapped(self.folder / 'terms.npy', dtype, total),
            weights=mapped(self.folder / 'weights.npy', np.float32, total),
        )

    @cached_property
    def postings(self) -> tuple[PostingsBlock, ...]:
        """The postings of each term, made once: generations that share the shard share them.

        They take 6 bytes a weight. Raises DamagedFileError for terms or weights that no shard has.
        """
        self._check_terms()
        rows = self.terms
        size = rows_together(len(self), len(rows.terms))
        blocks = []
        for first in range(0, len(self), size):
            vectors = rows.vectors(first, min(first + size, len(self)))
            blocks.append(PostingsBlock.of(vectors, first, rows.vocabulary))
        return tuple(blocks)

    def map_all(self) -> None:
        """Map every file, so that the shard stays readable where another process removes it."""
        for name in ROW_FILES:
            getattr(self, name)
        if self.record.terms is not None:
            _ = self.terms

    def verify(self) -> None:
        """Compare every file with its checksum. Raises DamagedFileError for one that differs."""
        for name in self.record.files:
            self._compare(name)

    def differences(self) -> Iterator[str]:
        """A line for each file that is missing or is not as it was written."""
        for name in self.record.files:
            try:
                self._compare(name)
            except DamagedFileError as error:
                yield str(error)

    def check_values(self) -> None:
        """Check vectors, and terms where there are any, whatever the files' checksums say.

        Raises DamagedFileError for values that are not finite, and for terms that no model has.
        """
        check_finite(self.vectors, self.folder / 'vectors.npy')
        if self.record.terms is not None:
            self._check_terms()

    def _check_terms(self) -> None:
        rows = self.terms
        check_terms(rows.terms, rows.offsets, rows.vocabulary, self.folder / 'terms.npy')
        check_finite(rows.weights, self.folder / 'weights.npy')

    def _compare(self, name: str) -> None:
        """Compare a file with its checksum."""
        compare_digest(
            self.folder / name, self.record.files[name], self.folder / _RECORD, remembered=False
        )

    def _array(
        self, name: str, dtype: Any, row_shape: tuple[int, ...] = (), n_more: int = 0
    ) -> NDArray[Any]:
        """The array of a small file, mapped, once the file is compared with its checksum.

        Parameters
        ----------
        name : of the file, without its suffix
        dtype : what it holds
        row_shape : of a row
        n_more : rows that it has beside one for each passage
        """
        array = mapped(self.folder / f'{name}.npy', dtype, (len(self) + n_more, *row_shape))
        self._compare(f'{name}.npy')
        return array


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
    rows : what it holds
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
    files = {}
    for name, array in _arrays_of(rows, dtype).items():
        path = folder / f'{name}.npy'
        np.save(path, array)
        files[path.name] = digest(path)
    record: dict[str, Any] = {
        'generation': generation,
        'rows': len(rows.documents),
        'dimension': int(rows.vectors.shape[1]),
        'files': files,
    }
    if rows.terms is not None:
        record['terms'] = _write_terms(folder, rows.terms, files)
    if dtype != 'float32':
        record['dtype'] = dtype
    content = json.dumps(record, indent=1, sort_keys=True) + '\n'
    (folder / _RECORD).write_text(content, encoding='utf-8')
    for path in (*folder.iterdir(), folder):
        sync_to_disk(path)
    return _name_of(content.encode())


def _write_terms(folder: Path, rows: TermRows, files: dict[str, str]) -> dict[str, Any]:
    """Write weights of terms.

    Parameters
    ----------
    folder : of the shard
    rows : its weights
    files : gets the digests of what is written

    Returns what the shard's record says of them.
    """
    for name in TERM_FILES:
        path = folder / f'{name}.npy'
        np.save(path, getattr(rows, name))
        files[path.name] = digest(path)
    return {
        'model': rows.model,
        'vocabulary': rows.vocabulary,
        'total': len(rows.terms),
    }


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


def _read_record(folder: Path) -> PassageShardRecord:
    path = folder / _RECORD
    again = 'restore the folder from a copy, or build the collection again'
    try:
        content = path.read_bytes()
        record = TypeAdapter(PassageShardRecord).validate_json(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedFileError(f'{path} is missing: {again}') from error
    except ValidationError as error:
        raise DamagedFileError(f'{path} is not the record of a shard: {again}') from error
    if _name_of(content) != folder.name:
        raise DamagedFileError(f'{path} is damaged, its digest is not {folder.name}: {again}')
    if set(record.files) != record.names():
        raise DamagedFileError(f'{path} does not name the files of a shard: {again}')
    return record

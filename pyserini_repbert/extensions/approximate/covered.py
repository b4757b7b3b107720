"""The approximate index of a ranking of a collection: its files, and the shards that it covers.

It has the rows of the shards that its record names, and stays in use while the collection changes.
Dead rows are left out of its hits, newer shards are searched exactly, and removed shards are
skipped. So only the finding of passages in the shards that it has is approximate. It is built by a
reader, without the lock of the collection's writer.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.checksums import digest
from pyserini_repbert.collection.shards import ShardName
from pyserini_repbert.errors import BusyError, DamagedFileError, InputError
from pyserini_repbert.extensions.approximate.form import ANN, ANN_FORM, CLEARED, INDEX, LOCK
from pyserini_repbert.extensions.approximate.index import (
    AGAIN,
    RECORD_CONFIG,
    AnnIndex,
    AnnRecord,
    read_ann_record,
)
from pyserini_repbert.files import locked, set_aside
from pyserini_repbert.index.records import Count

# Reading is tried so often where another process replaces the index meanwhile.
_TRIES = 10
_WAIT = 0.05  # seconds between two of them


@checked_dataclass(frozen=True, config=RECORD_CONFIG)
class CoveredShard:
    """A shard whose rows an approximate index has."""

    name: ShardName
    rows: Count


@checked_dataclass(frozen=True, kw_only=True, config=RECORD_CONFIG)
class CollectionAnnRecord(AnnRecord):
    """The record of a collection's approximate index; its shards are in the order of their rows.

    Raises ValueError if `count` is not the number of their rows.
    """

    shards: tuple[CoveredShard, ...]

    def __post_init__(self) -> None:
        if sum(shard.rows for shard in self.shards) != self.count:
            raise ValueError('the shards have another number of rows')


@dataclass(frozen=True)
class ShardVectors:
    """The vectors that a shard of a generation has of a ranking.

    Attributes
    ----------
    name : of the shard
    shape : of the vectors, (n, d)
    ends : where the vectors of each passage end, int64 (passages,)
    """

    name: str
    shape: tuple[int, int]
    ends: NDArray[np.int64]

    @property
    def has_one_each(self) -> bool:
        """Whether each passage has one vector."""
        n_vectors, _ = self.shape
        return len(self.ends) == n_vectors and bool((np.diff(self.ends, prepend=0) == 1).all())


# The indexes that are open, by collection and record: generations share them.
_OPENED: WeakValueDictionary[tuple[str, CollectionAnnRecord], AnnIndex[CollectionAnnRecord]] = (
    WeakValueDictionary()
)


def open_collection_ann(folder: Path, remembered: bool = True) -> AnnIndex[CollectionAnnRecord]:
    """The approximate index in a folder, opened once for all generations that use it.

    `folder` is as in `RankingVectors`. `remembered` is as in `AnnIndex`. Raises InputError if there
    is none, and DamagedFileError if it is incomplete.
    """
    for _ in range(_TRIES):
        record = _read_record(folder)
        key = (str(folder.absolute()), record)
        index = _OPENED.get(key) if remembered else None
        try:
            if index is None:
                index = AnnIndex(folder / ANN, record, remembered=remembered)
        except DamagedFileError:
            if _read_record(folder) == record:
                raise
            # Another process has replaced it meanwhile.
            continue
        _OPENED[key] = index
        return index
    raise BusyError(f'the approximate index in {folder / ANN} changes all the time: try it later')


def _read_record(folder: Path) -> CollectionAnnRecord:
    """The record of a collection's approximate index; waits while it is being replaced."""
    for _ in range(_TRIES):
        if (folder / ANN).exists() or not (folder / CLEARED).exists():
            break
        time.sleep(_WAIT)
    return read_ann_record(folder, CollectionAnnRecord)


def copy_collection_ann(source: Path, target: Path) -> None:
    """Copy the approximate index of a folder, if it has one, into another folder.

    Raises BusyError if other processes replace it all the time.
    """
    for _ in range(_TRIES):
        if not (source / ANN).is_dir():
            return
        with contextlib.suppress(FileNotFoundError, shutil.Error):
            shutil.copytree(source / ANN, target / ANN)
            record = read_ann_record(target, CollectionAnnRecord)
            if digest(target / ANN / INDEX) == record.index_sha256:
                return
        shutil.rmtree(target / ANN, ignore_errors=True)
        time.sleep(_WAIT)
    raise BusyError(
        f'the approximate index in {source / ANN} is damaged, or changed during each attempt to '
        f'copy it: {AGAIN}, or copy it later'
    )


def remove_unused_ann(folder: Path, shards: Sequence[str]) -> None:
    """Remove the approximate index in a folder if it has none of these shards.

    One that is being built, cannot be read, or holds what this package does not write, stays.
    """
    with (
        contextlib.suppress(BusyError, DamagedFileError, InputError, OSError),
        locked(folder / LOCK, f'the approximate index of {folder}'),
    ):
        record = read_ann_record(folder, CollectionAnnRecord)
        is_used = any(shard.name in shards for shard in record.shards)
        is_own = ANN_FORM.foreign_entry(folder / ANN) is None
        if not is_used and is_own and not (folder / ANN).is_symlink():
            ANN_FORM.remove(set_aside(folder / ANN))


class CoveredRows:
    """The rows of a generation whose vectors an approximate index has.

    Parameters
    ----------
    folder : around `ann`
    record : of the index
    shards : of the generation, in the order of their rows

    Attributes
    ----------
    is_covered : whether the index has a row, bool (rows,)

    Raises DamagedFileError for an index of other vectors.
    """

    def __init__(
        self, folder: Path, record: CollectionAnnRecord, shards: Sequence[ShardVectors]
    ) -> None:
        shard_of = {shard.name: shard for shard in shards}
        first_rows = {}
        n_rows = 0
        for shard in shards:
            first_rows[shard.name] = n_rows
            n_rows += len(shard.ends)
        has_one_each = all(shard.has_one_each for shard in shards)
        ends = [np.empty(0, np.int64)]
        rows = [np.empty(0, np.int64)]
        start = 0
        for covered in record.shards:
            known = shard_of.get(covered.name)
            if known is None:
                # Its vectors are of no row.
                n_groups = covered.rows if has_one_each else 1
                ends.append(np.full(n_groups, start + covered.rows))
                rows.append(np.full(n_groups, -1))
            else:
                if known.shape != (covered.rows, record.dimension):
                    raise DamagedFileError(
                        f'{folder / ANN} is not of the vectors of shard {covered.name}: {AGAIN}'
                    )
                ends.append(start + known.ends)
                rows.append(first_rows[covered.name] + np.arange(len(known.ends)))
            start += covered.rows
        # Where the vectors of each of `_rows` end; None: each has one.
        self._ends = None if has_one_each else np.concatenate(ends)
        self._rows = np.concatenate(rows)
        self.is_covered = np.zeros(n_rows, np.bool_)
        self.is_covered[self._rows[self._rows >= 0]] = True

    def rows_of(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of the generation for each vector of the index; -1 if its shard was removed, and
        for a vector -1.

        Both are of one shape.
        """
        groups = vectors
        if self._ends is not None:
            groups = np.searchsorted(self._ends, vectors, side='right')
        return np.where(vectors >= 0, self._rows[groups], -1)

"""An approximate index of a collection's passages: the folder `ann`, beside `shards`.

It has the rows of the shards that its record names, and stays in use while the collection changes:
rows that have died are left out of what it finds, newer shards are searched exactly, and shards
that are gone are passed over. So only the finding of passages in the shards that it has is
approximate. It is built by a reader, without the lock of the collection's writer.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.checksums import digest
from pyserini_repbert.collection.generation import Generation, open_generation
from pyserini_repbert.collection.passage_vectors import PassageVectors, shard_blocks
from pyserini_repbert.collection.shards import PassageShard, ShardName
from pyserini_repbert.errors import BusyError, DamagedFileError, InputError
from pyserini_repbert.files import locked, set_aside
from pyserini_repbert.index.ann import (
    AGAIN,
    RECORD_CONFIG,
    AnnIndex,
    AnnRecord,
    read_ann_record,
    write_ann,
)
from pyserini_repbert.index.ann_form import ANN, ANN_FORM, CLEARED, INDEX, LOCK
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.index.records import Count
from pyserini_repbert.search.ann import (
    AnnSettings,
    DenseRecall,
    allowed_rows,
    ann_lock,
    best_of,
    check_count,
    make_ann,
)
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import TopRows, top_rows

# How much deeper each further search for candidates goes, and how many there are.
_DEEPER = 4
_DEEPER_SEARCHES = 2
# Queries whose candidates are in memory together.
_QUERY_GROUP = 256
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

    Raises ValueError where `count` is not the number of their rows.
    """

    shards: tuple[CoveredShard, ...]

    def __post_init__(self) -> None:
        if sum(shard.rows for shard in self.shards) != self.count:
            raise ValueError('the shards have another number of rows')


# The indexes that are open, by collection and record: generations share them.
_OPENED: WeakValueDictionary[tuple[str, CollectionAnnRecord], AnnIndex[CollectionAnnRecord]] = (
    WeakValueDictionary()
)


def build_collection_ann(
    folder: Path,
    settings: AnnSettings | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> CollectionAnnRecord:
    """Build the approximate index of a collection's newest generation.

    Others may search and write the collection meanwhile.

    Parameters
    ----------
    folder : of the collection
    settings : what it has to reach; recall is measured on the live passages
    overwrite : replace the collection's approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError for a collection of too few passages, and where no setting reaches the recall;
    nothing is written then.
    """
    with contextlib.closing(open_generation(folder)) as generation:
        vectors = PassageVectors(generation)
        check_count(int(np.count_nonzero(vectors.live)), folder)
        with ann_lock(folder, overwrite):
            wanted = settings or AnnSettings()
            measure = DenseRecall(vectors, wanted, vectors.live)
            built = make_ann(vectors, wanted, measure, on_progress)
            shards = tuple(CoveredShard(shard.name, len(shard)) for shard in vectors.shards)
            record = CollectionAnnRecord(**vars(built.record), shards=shards)
            return write_ann(folder, built.index, record)


def open_collection_ann(folder: Path, remembered: bool = True) -> AnnIndex[CollectionAnnRecord]:
    """The approximate index in a folder, opened once for all generations that use it.

    `folder` is the collection's, or the one in it that has the index of a further model
    (`approximate_representation`). `remembered` is as in `AnnIndex`. Raises InputError if there is
    none, DamagedFileError for one that is not whole.
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
    """Copy the approximate index in a folder, if it has one, into another folder.

    Raises BusyError where other processes replace it all the time.
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


class _ShardVectors:
    """The vectors of some shards, as `Blocks`."""

    def __init__(self, shards: Sequence[PassageShard]) -> None:
        self._shards = shards

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._shards)

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """As in `Blocks`."""
        return shard_blocks(self._shards, size)


class CollectionAnn:
    """Approximate search of a generation's passages.

    Parameters
    ----------
    vectors : of the generation
    exact : searches them exactly, where too few candidates are found
    device : where vectors of newer shards are multiplied

    Attributes
    ----------
    record : of the index
    index : that finds candidates
    n_covered : how many live rows the index has

    Raises
    ------
    InputError : there is no approximate index
    DamagedFileError : it is not whole, or its vectors have another length
    """

    def __init__(self, vectors: PassageVectors, exact: QuickIndex, device_name: str) -> None:
        self.index = open_collection_ann(vectors.folder)
        self.record = self.index.record
        self._vectors = vectors
        self._exact = exact
        self._rows = _rows_in(vectors, self.record)
        self._is_covered = np.zeros(len(vectors), np.bool_)
        self._is_covered[self._rows[self._rows >= 0]] = True
        self.n_covered = int(np.count_nonzero(self._is_covered & vectors.live))
        names = {shard.name for shard in self.record.shards}
        newer = [shard for shard in vectors.shards if shard.name not in names]
        self._newer = _ShardVectors(newer)
        self._newer_rows = np.flatnonzero(~self._is_covered)
        self._newer_index = QuickIndex(self._newer, device_name, [shard.part for shard in newer])

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """The k best of each query's allowed rows that are found, and all that tie with the last.

        There are k rows, or all that are allowed. Their scores are exact.

        Parameters
        ----------
        queries : float32 (n, d)
        k : how many
        allowed : the rows that count, bool (rows,)
        """
        tops: list[TopRows] = []
        for start in range(0, len(queries), _QUERY_GROUP):
            group = np.ascontiguousarray(queries[start : start + _QUERY_GROUP], np.float32)
            covered = self._search_covered(group, k, allowed & self._is_covered)
            tops += self._add_newer(covered, group, k, allowed)
        return tops

    def _search_covered(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """As in `search`, among rows that the index has."""
        n_allowed = int(np.count_nonzero(allowed))
        wanted = min(k, n_allowed)
        if not wanted:
            return [_NO_ROWS for _ in queries]
        top_of: dict[int, TopRows] = {}
        waiting = np.arange(len(queries))
        # As deep as the share of rows that count lets expect.
        depth = -(-wanted * self.record.count // n_allowed)
        for _ in range(1 + _DEEPER_SEARCHES):
            if depth >= self.record.count or not len(waiting):
                break
            group = queries[waiting]
            for number, top in zip(
                waiting.tolist(), self._best_candidates(group, wanted, depth, allowed), strict=True
            ):
                if len(top.rows) >= wanted:
                    top_of[number] = top
            waiting = np.array([number for number in waiting if number not in top_of], np.int64)
            depth *= _DEEPER
        if len(waiting):
            tops = self._exact.search(queries[waiting], wanted, allowed)
            top_of.update(zip(waiting.tolist(), tops, strict=True))
        return [top_of[number] for number in range(len(queries))]

    def _best_candidates(
        self, queries: NDArray[np.float32], k: int, depth: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """The k best of the allowed candidates for the `depth` best rows of the index."""
        candidates = self.index.rows(queries, depth)
        # The rows of the generation; rows of removed shards have none.
        rows = np.where(candidates >= 0, self._rows[candidates], -1)
        return best_of(self._vectors, queries, allowed_rows(rows, allowed), k)

    def _add_newer(
        self,
        covered: list[TopRows],
        queries: NDArray[np.float32],
        k: int,
        allowed: NDArray[np.bool_],
    ) -> list[TopRows]:
        """The best of what was found in the index and of what newer shards have."""
        if not len(self._newer):
            return covered
        newer = self._newer_index.search(queries, k, allowed[self._newer_rows])
        tops = []
        for covered_top, newer_top in zip(covered, newer, strict=True):
            scores = np.concatenate([covered_top.scores, newer_top.scores])
            rows = np.concatenate([covered_top.rows, self._newer_rows[newer_top.rows]])
            tops.append(top_rows(scores, rows, k))
        return tops


_NO_ROWS = TopRows(np.empty(0, np.float32), np.empty(0, np.int64))


def _rows_in(vectors: PassageVectors, record: CollectionAnnRecord) -> NDArray[np.int64]:
    """The row of a generation for each row of an approximate index; -1 where its shard is gone.

    Raises DamagedFileError for an index of other vectors.
    """
    first_rows = {}
    first = 0
    for shard in vectors.shards:
        first_rows[shard.name] = first
        first += len(shard)
    n_rows = {shard.name: len(shard) for shard in vectors.shards}
    parts = [np.empty(0, np.int64)]
    for covered in record.shards:
        if covered.name not in first_rows:
            parts.append(np.full(covered.rows, -1))
            continue
        if n_rows[covered.name] != covered.rows or record.dimension != vectors.settings.dimension:
            raise other_vectors(vectors.folder, covered)
        parts.append(first_rows[covered.name] + np.arange(covered.rows))
    return np.concatenate(parts)


def other_vectors(folder: Path, covered: CoveredShard) -> DamagedFileError:
    """The error for the index in a folder that has other vectors than a shard of that name."""
    return DamagedFileError(
        f'{folder / ANN} is not of the vectors of shard {covered.name}: {AGAIN}'
    )


def describe_ann(generation: Generation) -> str:
    """A line that says what a generation's approximate index is, once its files are compared; ''
    without one.

    Raises DamagedFileError for an index that is not whole, or does not fit.
    """
    if not (generation.folder / ANN).exists():
        return ''
    vectors = PassageVectors(generation)
    record = open_collection_ann(generation.folder, remembered=False).record
    rows = _rows_in(vectors, record)
    n_covered = int(np.count_nonzero(vectors.live[rows[rows >= 0]]))
    n_live = int(np.count_nonzero(vectors.live))
    return f'{generation.folder / ANN}: whole, has {n_covered} of {n_live} passages, {record}'

"""Docids of a shard, a line each, memory-mapped: a hundred million of them cost a file, not a list."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError

_WORD = 8  # bytes
_MASKS = np.asarray([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
_FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_TOGETHER = 1 << 14  # docids hashed at a time: what the second-level cache holds
_BUCKETS_TOGETHER = 1 << 20

Array = NDArray[Any]


class DocidColumn(Sequence[str]):
    """The docids of `docids.txt` by row.

    Opening maps the file and reads nothing of it; where the lines end is found when the first docid is asked for, which
    raises DamagedFileError where the file has not `count` lines.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        with open(path, 'rb') as stream:
            self._data: mmap.mmap | bytes = b''
            if path.stat().st_size:
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """int64 (count + 1,): -1, and where each line ends."""
        ends = np.flatnonzero(np.frombuffer(self._data, dtype=np.uint8) == ord('\n'))
        if len(ends) != self._count:
            raise DamagedFileError(
                f'{self._path} has {len(ends)} lines, its manifest says {self._count}: build the index again'
            )
        return np.concatenate([[-1], ends]).astype(np.int64)

    def verify(self) -> None:
        """Raises DamagedFileError where the file has not as many lines as docids."""
        len(self._bounds)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._decoded(self._data[self._bounds[row] + 1 : self._bounds[row + 1]])

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def many(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of many rows: less work than one by one."""
        starts, ends = (self._bounds[rows] + 1).tolist(), self._bounds[rows + 1].tolist()
        data = self._data
        lines = [data[start:end] for start, end in zip(starts, ends, strict=True)]
        return self._decoded(b'\n'.join(lines)).split('\n') if lines else []

    def lines(self, rows: NDArray[np.int64] | slice) -> Lines:
        """The docids of some rows, as bytes."""
        starts = self._bounds[:-1][rows] + 1
        return Lines(np.frombuffer(self._data, dtype=np.uint8), starts, self._bounds[1:][rows] - starts)

    def hashes(self) -> NDArray[np.uint64]:
        """uint64 (n,): see `Lines`. Raises DamagedFileError for a file that is not valid UTF-8."""
        found = np.empty(self._count, np.uint64)
        for start in range(0, self._count, _TOGETHER):
            end = min(start + _TOGETHER, self._count)
            self._decoded(self._data[self._bounds[start] + 1 : self._bounds[end]])
            found[start:end] = self.lines(slice(start, end)).hashes()
        return found

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode('utf-8')
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{self._path} is not valid UTF-8: see `index check`, build the index again'
            ) from error


class Lines(NamedTuple):
    """Docids as bytes: all in one array, where each begins, and how long it is, int64 (n,) each."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, docids: Sequence[str]) -> Lines:
        """Given docids."""
        raw = '\n'.join(docids).encode(errors='surrogatepass')
        data = np.frombuffer(raw, dtype=np.uint8)
        ends = np.append(np.flatnonzero(data == ord('\n')), len(data))
        if len(ends) != len(docids):  # one holds a line feed
            ends = np.cumsum([len(docid.encode(errors='surrogatepass')) + 1 for docid in docids]) - 1
        starts = np.concatenate([[0], ends[:-1] + 1])
        return cls(data, starts, ends - starts)

    def words(self, number: int, which: NDArray[np.int64] | slice) -> NDArray[np.uint64]:
        """Eight bytes of some docids, the first or following ones, as one number, 0 beyond their end: uint64 (m,)."""
        rest = self.lengths[which] - number * _WORD
        found = _words_at(self.data, self.starts[which] + number * _WORD)
        found &= _MASKS.take(rest, mode='clip')
        return found

    def hashes(self) -> NDArray[np.uint64]:
        """uint64 (n,), the same in every process."""
        found = self.lengths.astype(np.uint64)
        longest = int(self.lengths.max(initial=0))
        which: NDArray[np.int64] | slice = slice(None)
        for number in range(-(-longest // _WORD)):
            if number:
                which = np.flatnonzero(self.lengths > number * _WORD)
            mixed = found[which] ^ self.words(number, which)
            for factor in _FACTORS:  # the finaliser of MurmurHash3, which spreads each bit over all
                mixed ^= mixed >> np.uint64(33)
                mixed *= factor
            mixed ^= mixed >> np.uint64(33)
            found[which] = mixed
        return found

    def same(self, other: Lines) -> NDArray[np.bool_]:
        """Which docids equal the other's in the same place, bool (n,)."""
        same: NDArray[np.bool_] = self.lengths == other.lengths
        longest = int(self.lengths.max(initial=0))
        which: NDArray[np.int64] | slice = slice(None)
        for number in range(-(-longest // _WORD)):
            if number:
                which = np.flatnonzero(same & (self.lengths > number * _WORD))
            same[which] &= self.words(number, which) == other.words(number, which)
        return same

    def some(self, which: NDArray[np.int64]) -> Lines:
        """Some of the docids."""
        return Lines(self.data, self.starts[which], self.lengths[which])


class Directory:
    """Rows by docid over several columns, counted on from one to the next; the lowest of equal docids.

    Making it reads all docids and sorts their hashes; a table says where those that begin with the same bits are, about
    one of them. It costs 12 to 16 bytes a docid, and a look-up hardly takes longer in ten million docids than in
    ten thousand.
    """

    def __init__(self, columns: Sequence[DocidColumn]) -> None:
        self._columns = list(columns)
        self._starts = np.cumsum([0, *map(len, self._columns)])
        count = int(self._starts[-1])
        hashes = _hashes(self._columns)
        rows = np.argsort(hashes, kind='stable')
        hashes = hashes[rows]
        self._rows = rows.astype(np.uint32 if count <= np.iinfo(np.uint32).max else np.int64)
        del rows
        self._tags = hashes.astype(np.uint32)
        bits = max(count, 1).bit_length()
        self._shift = np.uint64(64 - bits)
        hashes >>= self._shift
        self._buckets: Array = np.empty((1 << bits) + 1, self._rows.dtype)
        for start in range(0, len(self._buckets), _BUCKETS_TOGETHER):
            end = min(start + _BUCKETS_TOGETHER, len(self._buckets))
            self._buckets[start:end] = np.searchsorted(hashes, np.arange(start, end, dtype=np.uint64))

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """int64 (n,): the row of each docid, -1 for one that is in no column."""
        found = np.full(len(docids), -1, dtype=np.int64)
        if not len(self._rows) or not len(docids):
            return found
        wanted = Lines.of(docids)
        hashes = wanted.hashes()
        tags, buckets = hashes.astype(np.uint32), (hashes >> self._shift).astype(np.int64)
        places, ends = self._buckets.take(buckets).astype(np.int64), self._buckets.take(buckets + 1)
        waiting = np.flatnonzero(places < ends)
        while len(waiting):  # a second round only where different docids have one hash
            waiting = self._alike(waiting, places, ends, tags)
            rows = self._rows.take(places[waiting]).astype(np.int64)
            right = self._are(rows, wanted if len(waiting) == len(docids) else wanted.some(waiting))
            found[waiting[right]] = rows[right]
            waiting = waiting[~right]
            places[waiting] += 1
            waiting = waiting[places[waiting] < ends[waiting]]
        return found

    def _alike(
        self, waiting: NDArray[np.int64], places: NDArray[np.int64], ends: Array, tags: NDArray[np.uint32]
    ) -> NDArray[np.int64]:
        """Move `places` on to where the tag is the wanted one; which of `waiting` have such a place."""
        at, wanted, end = places[waiting], tags[waiting], ends[waiting]
        while (other := (self._tags.take(at, mode='clip') != wanted) & (at < end)).any():
            at += other
        places[waiting] = at
        return waiting[at < end]

    def _are(self, rows: NDArray[np.int64], docids: Lines) -> NDArray[np.bool_]:
        """Whether the docid of each row is the one given."""
        if len(self._columns) == 1:
            return docids.same(self._columns[0].lines(rows))
        right = np.zeros(len(rows), dtype=bool)
        numbers = np.searchsorted(self._starts, rows, side='right') - 1
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            right[places] = docids.some(places).same(self._columns[number].lines(rows[places] - self._starts[number]))
        return right


def _words_at(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The bytes data[place : place + 8], the first one lowest, 0 beyond the end: uint64 (m,)."""
    if len(data) < _WORD:
        data = np.concatenate([data, np.zeros(_WORD - len(data), dtype=np.uint8)])
    last = len(data) - _WORD
    everywhere = np.ndarray((last + 1,), np.dtype('<u8'), data, 0, (1,))
    beyond = np.minimum(np.maximum(places - last, 0), _WORD)
    found: NDArray[np.uint64] = everywhere[np.minimum(places, last)]
    if beyond.any():
        half = (beyond * 4).view(np.uint64)  # in two halves: a number cannot be shifted by all of its 64 bits at once
        found = found >> half >> half
    return found


def _hashes(columns: Sequence[DocidColumn]) -> NDArray[np.uint64]:
    return np.concatenate([np.empty(0, np.uint64), *(column.hashes() for column in columns)])


def same_docids(columns: Sequence[DocidColumn]) -> tuple[str, int, int] | None:
    """A docid that is in two rows, and the numbers of their columns; None where all differ (16 bytes a docid)."""
    starts = np.cumsum([0, *map(len, columns)])
    hashes = _hashes(columns)
    order = np.argsort(hashes, kind='stable')
    ordered = hashes[order]
    alike = np.flatnonzero(ordered[1:] == ordered[:-1])
    seen: dict[str, int] = {}
    rows = np.unique(np.concatenate([order[alike], order[alike + 1]]))
    for row in rows.tolist():
        number = int(np.searchsorted(starts, row, side='right')) - 1
        docid = columns[number][row - int(starts[number])]
        if docid in seen:
            return docid, seen[docid], number
        seen[docid] = number
    return None

"""The docids of a shard, one a line, memory-mapped: a hundred million of them need no list of strings."""

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
_TOGETHER = 1 << 14  # docids hashed at a time: their arrays fit the L2 cache
_BUCKETS_TOGETHER = 1 << 20

Array = NDArray[Any]


class DocidColumn(Sequence[str]):
    """The docids of `docids.txt` by row.

    Opening maps the file without reading it. The first access finds the line ends, and raises DamagedFileError if the
    file does not have `count` lines.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        with open(path, 'rb') as stream:
            self._data: mmap.mmap | bytes = b''
            if path.stat().st_size:
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """-1, then the position of each line feed: int64 (count + 1,)."""
        ends = np.flatnonzero(np.frombuffer(self._data, dtype=np.uint8) == ord('\n'))
        if len(ends) != self._count:
            raise DamagedFileError(
                f'{self._path} has {len(ends)} lines, its manifest says {self._count}: build the index again'
            )
        return np.concatenate([[-1], ends]).astype(np.int64)

    def verify(self) -> None:
        """Raises DamagedFileError if the file does not have `count` lines."""
        len(self._bounds)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._decoded(self._data[self._bounds[row] + 1 : self._bounds[row + 1]])

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    def many(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,): faster than one by one."""
        starts, ends = (self._bounds[rows] + 1).tolist(), self._bounds[rows + 1].tolist()
        data = self._data
        lines = [data[start:end] for start, end in zip(starts, ends, strict=True)]
        return self._decoded(b'\n'.join(lines)).split('\n') if lines else []

    def lines(self, rows: NDArray[np.int64] | slice) -> Lines:
        """The docids of some rows, as bytes."""
        starts = self._bounds[:-1][rows] + 1
        return Lines(np.frombuffer(self._data, dtype=np.uint8), starts, self._bounds[1:][rows] - starts)

    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of all docids, uint64 (n,), as in `Lines`. Raises DamagedFileError if the file is not UTF-8."""
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
    """Docids as bytes in one array, with the start and the length of each in bytes, int64 (n,)."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, docids: Sequence[str]) -> Lines:
        """The bytes of these docids, which may hold line feeds."""
        raw = '\n'.join(docids).encode(errors='surrogatepass')
        data = np.frombuffer(raw, dtype=np.uint8)
        ends = np.append(np.flatnonzero(data == ord('\n')), len(data))
        if len(ends) != len(docids):  # a docid holds a line feed
            ends = np.cumsum([len(docid.encode(errors='surrogatepass')) + 1 for docid in docids]) - 1
        starts = np.concatenate([[0], ends[:-1] + 1])
        return cls(data, starts, ends - starts)

    def words(self, number: int, which: NDArray[np.int64] | slice) -> NDArray[np.uint64]:
        """The word of eight bytes with this number, from 0, of some docids: uint64 (m,), bytes beyond their end 0."""
        rest = self.lengths[which] - number * _WORD
        found = _words_at(self.data, self.starts[which] + number * _WORD)
        found &= _MASKS.take(rest, mode='clip')
        return found

    def hashes(self) -> NDArray[np.uint64]:
        """A hash of each docid, uint64 (n,), the same in every process."""
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
        """Whether each docid equals the one in the same place of `other`, bool (n,)."""
        same: NDArray[np.bool_] = self.lengths == other.lengths
        longest = int(self.lengths.max(initial=0))
        which: NDArray[np.int64] | slice = slice(None)
        for number in range(-(-longest // _WORD)):
            if number:
                which = np.flatnonzero(same & (self.lengths > number * _WORD))
            same[which] &= self.words(number, which) == other.words(number, which)
        return same

    def some(self, which: NDArray[np.int64]) -> Lines:
        """The docids at these places, int64 (m,)."""
        return Lines(self.data, self.starts[which], self.lengths[which])


class Directory:
    """Finds rows by docid over several columns, numbered on from one column to the next; of equal docids the first.

    Construction reads all docids, sorts their hashes and groups them into buckets by their leading bits, about one
    docid a bucket. It keeps 12 to 16 bytes a docid; a look-up among ten million docids takes hardly longer than among
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
        """The row of each docid, int64 (n,); -1 for a docid that is in no column."""
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
        """Advance `places` to the next entry of its bucket with the wanted tag; returns those of `waiting` with one."""
        at, wanted, end = places[waiting], tags[waiting], ends[waiting]
        while (other := (self._tags.take(at, mode='clip') != wanted) & (at < end)).any():
            at += other
        places[waiting] = at
        return waiting[at < end]

    def _are(self, rows: NDArray[np.int64], docids: Lines) -> NDArray[np.bool_]:
        """Whether each row's docid is the one given, bool (n,)."""
        if len(self._columns) == 1:
            return docids.same(self._columns[0].lines(rows))
        right = np.zeros(len(rows), dtype=bool)
        numbers = np.searchsorted(self._starts, rows, side='right') - 1
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            right[places] = docids.some(places).same(self._columns[number].lines(rows[places] - self._starts[number]))
        return right


def _words_at(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The bytes data[place : place + 8] as little-endian integers, 0 beyond the end: uint64 (m,)."""
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
    """A docid in two rows, and the numbers of their columns; None if all differ. Takes about 25 bytes a docid."""
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

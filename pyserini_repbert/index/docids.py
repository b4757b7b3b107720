"""The docids of shards, one a line, memory-mapped.

A hundred million of them need no list of strings.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError

_TOGETHER = 1 << 16  # docids hashed at a time, which bounds the strings in memory


class DocidColumn(Sequence[str]):
    """The docids of `docids.txt` by row.

    Opening maps the file without reading it. The first access finds the line ends, and raises
    DamagedFileError if the file does not have `count` lines.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._count = count
        self._data = mapped_bytes(path)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """-1, then the position of each line feed: int64 (count + 1,)."""
        ends = np.flatnonzero(np.frombuffer(self._data, dtype=np.uint8) == ord('\n'))
        if len(ends) != self._count:
            wrong = f'has {len(ends)} lines, its manifest says {self._count}'
            raise DamagedFileError(f'{self._path} {wrong}: build the index again')
        return np.concatenate([[-1], ends]).astype(np.int64)

    def verify(self) -> None:
        """Raises DamagedFileError if the file does not have `count` lines."""
        len(self._bounds)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._decoded(self._data[self._bounds[row] + 1 : self._bounds[row + 1]])

    def many(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,): faster than one by one."""
        if not len(rows):
            return []
        starts = self._bounds[rows] + 1
        # Of each line with its line feed.
        lengths = self._bounds[rows + 1] + 1 - starts
        ends = np.cumsum(lengths)
        positions = np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1])
        lines = np.frombuffer(self._data, dtype=np.uint8)[positions]
        return self._decoded(lines.tobytes()).split('\n')[:-1]

    def hashes(self) -> NDArray[np.int64]:
        """Python's hashes of all docids, int64 (n,), which hold in this process only."""
        hashes = np.empty(self._count, np.int64)
        for start in range(0, self._count, _TOGETHER):
            end = min(start + _TOGETHER, self._count)
            raw = self._data[self._bounds[start] + 1 : self._bounds[end]]
            docids = self._decoded(raw).split('\n')
            hashes[start:end] = np.fromiter(map(hash, docids), np.int64, end - start)
        return hashes

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode('utf-8')
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{self._path} is not valid UTF-8: build the index again'
            ) from error


class ColumnRow(NamedTuple):
    """A row of one of several columns."""

    column: int  # its number
    row: int  # in the column


class ColumnSelection(NamedTuple):
    """The rows, of n, that are in one column."""

    column: int  # its number
    mask: NDArray[np.bool_]  # (n,): which of the rows they are
    rows: NDArray[np.int64]  # their numbers in the column


class Repetition(NamedTuple):
    """A docid in two rows, and the numbers of their columns."""

    docid: str
    first: int
    second: int


class Docids:
    """The docids of several columns, whose rows are numbered on from one column to the next.

    `starts` are the first row of each column, and the end.
    """

    def __init__(self, columns: Sequence[DocidColumn]) -> None:
        self._columns = list(columns)
        self.starts = np.cumsum([0, *map(len, self._columns)])

    def column(self, row: int) -> ColumnRow:
        """The column that holds a row, and the row's number in it."""
        number = int(np.searchsorted(self.starts, row, side='right')) - 1
        return ColumnRow(number, row - int(self.starts[number]))

    def by_column(self, rows: NDArray[np.int64]) -> Iterator[ColumnSelection]:
        """The selection of `rows`, int64 (n,), for each column with any of them."""
        numbers = np.searchsorted(self.starts, rows, side='right') - 1
        for number in np.unique(numbers).tolist():
            mask = numbers == number
            yield ColumnSelection(number, mask, rows[mask] - self.starts[number])

    def many(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,)."""
        if len(self._columns) == 1:
            return self._columns[0].many(rows)
        docids = np.empty(len(rows), object)
        for selection in self.by_column(rows):
            docids[selection.mask] = self._columns[selection.column].many(selection.rows)
        return docids.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """All hashes in ascending order, and the row of each.

        They take 12 bytes a docid, 16 beyond four billion.
        """
        of_columns = [column.hashes() for column in self._columns]
        hashes = np.concatenate([np.empty(0, np.int64), *of_columns])
        order = np.argsort(hashes, kind='stable')
        dtype = np.uint32 if len(order) <= np.iinfo(np.uint32).max else np.int64
        return hashes[order], order.astype(dtype)

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each docid, int64 (n,).

        Of a docid in several rows, it is the first; -1 for a docid that no column has.
        """
        hashes, order = self._sorted
        rows_of = np.full(len(docids), -1, dtype=np.int64)
        wanted = np.fromiter(map(hash, docids), np.int64, len(docids))
        # For each docid, the position in `hashes` that is looked at next.
        positions = np.searchsorted(hashes, wanted)
        waiting = np.arange(len(docids) if len(hashes) else 0)
        # There is a second round only where different docids have one hash.
        while len(waiting):
            waiting = waiting[positions[waiting] < len(hashes)]
            waiting = waiting[hashes[positions[waiting]] == wanted[waiting]]
            rows = order[positions[waiting]].astype(np.int64)
            asked = map(docids.__getitem__, waiting.tolist())
            same = np.fromiter(map(eq, asked, self.many(rows)), bool, len(rows))
            rows_of[waiting[same]] = rows[same]
            waiting = waiting[~same]
            positions[waiting] += 1
        return rows_of

    def repeated(self) -> Repetition | None:
        """A docid that two rows have; None if all differ."""
        hashes, order = self._sorted
        alike = np.flatnonzero(hashes[1:] == hashes[:-1])
        rows = np.unique(np.concatenate([order[alike], order[alike + 1]])).astype(np.int64)
        columns_of: dict[str, int] = {}
        for row, docid in zip(rows.tolist(), self.many(rows), strict=True):
            number = self.column(row).column
            if docid in columns_of:
                return Repetition(docid, columns_of[docid], number)
            columns_of[docid] = number
        return None


def mapped_bytes(path: Path) -> mmap.mmap | bytes:
    """A file's content, memory-mapped: it stays readable when the file is removed."""
    # An empty file cannot be mapped.
    if not path.stat().st_size:
        return b''
    with open(path, 'rb') as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

"""The docids of shards, one a line, memory-mapped: a hundred million of them need no list of
strings.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

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
        starts = (self._bounds[rows] + 1).tolist()
        ends = self._bounds[rows + 1].tolist()
        lines = [self._data[start:end] for start, end in zip(starts, ends, strict=True)]
        return self._decoded(b'\n'.join(lines)).split('\n') if lines else []

    def hashes(self) -> NDArray[np.int64]:
        """Python's hashes of all docids, int64 (n,), which hold in this process only."""
        hashes = np.empty(self._count, np.int64)
        for start in range(0, self._count, _TOGETHER):
            end = min(start + _TOGETHER, self._count)
            docids = self._decoded(self._data[self._bounds[start] + 1 : self._bounds[end]]).split(
                '\n'
            )
            hashes[start:end] = np.fromiter(map(hash, docids), np.int64, end - start)
        return hashes

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode('utf-8')
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{self._path} is not valid UTF-8: build the index again'
            ) from error


class Docids:
    """The docids of several columns, whose rows are numbered on from one column to the next."""

    def __init__(self, columns: Sequence[DocidColumn]) -> None:
        self._columns = list(columns)
        self.starts = np.cumsum(
            [0, *map(len, self._columns)]
        )  # the first row of each column, and the end

    def column(self, row: int) -> tuple[int, int]:
        """The number of the column that holds a row, and the row's number in it."""
        number = int(np.searchsorted(self.starts, row, side='right')) - 1
        return number, row - int(self.starts[number])

    def by_column(
        self, rows: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.bool_], NDArray[np.int64]]]:
        """For each column with any of `rows`, int64 (n,): its number, which rows they are, and
        their numbers in it.
        """
        numbers = np.searchsorted(self.starts, rows, side='right') - 1
        for number in np.unique(numbers).tolist():
            here = numbers == number
            yield number, here, rows[here] - self.starts[number]

    def many(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,)."""
        docids = np.empty(len(rows), object)
        for number, here, places in self.by_column(rows):
            docids[here] = self._columns[number].many(places)
        return docids.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """All hashes in ascending order, and the row of each: 12 bytes a docid, 16 beyond four
        billion.
        """
        hashes = np.concatenate(
            [np.empty(0, np.int64), *(column.hashes() for column in self._columns)]
        )
        order = np.argsort(hashes, kind='stable')
        return hashes[order], order.astype(
            np.uint32 if len(order) <= np.iinfo(np.uint32).max else np.int64
        )

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each docid, int64 (n,); the first of several, -1 for a docid that no column
        has.
        """
        hashes, order = self._sorted
        rows_of = np.full(len(docids), -1, dtype=np.int64)
        wanted = np.fromiter(map(hash, docids), np.int64, len(docids))
        places = np.searchsorted(hashes, wanted)
        waiting = np.arange(len(docids) if len(hashes) else 0)
        while len(waiting):  # a second round only where different docids have one hash
            waiting = waiting[places[waiting] < len(hashes)]
            waiting = waiting[hashes[places[waiting]] == wanted[waiting]]
            rows = order[places[waiting]].astype(np.int64)
            stored = self.many(rows)
            same = np.array(
                [docids[i] == docid for i, docid in zip(waiting.tolist(), stored, strict=True)],
                bool,
            )
            rows_of[waiting[same]] = rows[same]
            waiting = waiting[~same]
            places[waiting] += 1
        return rows_of

    def repeated(self) -> tuple[str, int, int] | None:
        """A docid in two rows, and the numbers of their columns; None if all differ."""
        hashes, order = self._sorted
        alike = np.flatnonzero(hashes[1:] == hashes[:-1])
        rows = np.unique(np.concatenate([order[alike], order[alike + 1]])).astype(np.int64)
        seen: dict[str, int] = {}
        for row, docid in zip(rows.tolist(), self.many(rows), strict=True):
            number, _ = self.column(row)
            if docid in seen:
                return docid, seen[docid], number
            seen[docid] = number
        return None


def mapped_bytes(path: Path) -> mmap.mmap | bytes:
    """A file's content, memory-mapped: it stays readable when the file is removed."""
    with open(path, 'rb') as stream:
        return (
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b''
        )

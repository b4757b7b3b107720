"""Docids of a shard, a line each, memory-mapped: a hundred million of them cost a file, not a list."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError


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

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode('utf-8')
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{self._path} is not valid UTF-8: see `index check`, build the index again'
            ) from error


class Directory:
    """Rows by docid over several columns, counted on from one to the next; the lowest of equal docids.

    Making it reads and sorts the hashes of all docids (16 bytes a docid).
    """

    def __init__(self, columns: Sequence[DocidColumn]) -> None:
        self._columns = list(columns)
        self._starts = np.cumsum([0, *map(len, self._columns)])
        docids = itertools.chain.from_iterable(self._columns)
        hashes = np.fromiter(map(hash, docids), dtype=np.int64, count=int(self._starts[-1]))
        self._rows = np.argsort(hashes, kind='stable')
        self._hashes = hashes[self._rows]

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """int64 (n,): the row of each docid, -1 for one that is in no column."""
        found = np.full(len(docids), -1, dtype=np.int64)
        if not len(self._hashes) or not len(docids):
            return found
        wanted = np.fromiter(map(hash, docids), dtype=np.int64, count=len(docids))
        places = np.searchsorted(self._hashes, wanted)
        waiting = np.arange(len(docids))
        while len(waiting):  # a second round only where different docids have one hash
            waiting = waiting[places[waiting] < len(self._hashes)]
            waiting = waiting[self._hashes[places[waiting]] == wanted[waiting]]
            rows = self._rows[places[waiting]]
            right = self._are(rows, [docids[i] for i in waiting.tolist()])
            found[waiting[right]] = rows[right]
            waiting = waiting[~right]
            places[waiting] += 1
        return found

    def _are(self, rows: NDArray[np.int64], docids: list[str]) -> NDArray[np.bool_]:
        """Whether the docid of each row is the one given."""
        right = np.zeros(len(rows), dtype=bool)
        numbers = np.searchsorted(self._starts, rows, side='right') - 1
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            own = self._columns[number].many(rows[places] - self._starts[number])
            given = docids if len(places) == len(docids) else [docids[i] for i in places.tolist()]
            right[places] = True if own == given else [one == other for one, other in zip(own, given, strict=True)]
        return right


def same_docids(columns: Sequence[DocidColumn]) -> tuple[str, int, int] | None:
    """A docid that is in two rows, and the numbers of their columns; None where all differ (16 bytes a docid)."""
    starts = np.cumsum([0, *map(len, columns)])
    hashes = np.fromiter(map(hash, itertools.chain.from_iterable(columns)), dtype=np.int64, count=int(starts[-1]))
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

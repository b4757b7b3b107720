"""Docids of a shard, a line each, memory-mapped: a hundred million of them cost a file, not a list."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError


class DocidColumn(Sequence[str]):
    """The docids of `docids.txt` by row. Raises DamagedFileError where the file has not `count` lines."""

    def __init__(self, path: Path, count: int) -> None:
        with open(path, 'rb') as stream:
            self._data: mmap.mmap | bytes = b''
            if path.stat().st_size:
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        ends = np.flatnonzero(np.frombuffer(self._data, dtype=np.uint8) == ord('\n'))
        if len(ends) != count:
            raise DamagedFileError(f'{path} has {len(ends)} lines, its manifest says {count}: build the index again')
        self._bounds = np.concatenate([[-1], ends]).astype(np.int64)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._data[self._bounds[row] + 1 : self._bounds[row + 1]].decode('utf-8')

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(len(self)))

    @cached_property
    def _by_hash(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        hashes = np.fromiter((hash(docid) for docid in self), dtype=np.int64, count=len(self))
        rows = np.argsort(hashes, kind='stable')
        return hashes[rows], rows

    def row(self, docid: str) -> int | None:
        """The row of a docid, or None. The first call sorts the shard's hashes (16 bytes a docid)."""
        hashes, rows = self._by_hash
        position = int(np.searchsorted(hashes, hash(docid)))
        while position < len(hashes) and hashes[position] == hash(docid):
            row = int(rows[position])
            if self[row] == docid:
                return row
            position += 1
        return None

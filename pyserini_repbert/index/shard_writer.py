"""The common writer of all bundles: a shard appears only when it is complete."""

from __future__ import annotations

import hashlib
import io
import json
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pyserini_repbert.checksums import digest
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.index.manifest import SHARD, write_json
from pyserini_repbert.index.records import (
    DOCIDS,
    TEXT_OFFSETS,
    TEXTS,
    Overlap,
    SettingsT,
    ShardRecord,
)

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import Passage

# Passages: 200 MB of 768 float32, 215 MB of EPIC at r=1000. A kill loses at most one shard's work.
SHARD_SIZE = 65536

Vectors = TypeVar('Vectors')


def digested(passage: Passage) -> bytes:
    """The bytes that a passage adds to the sha256 of its corpus.

    By it, a resumed run notices another corpus.
    """
    return json.dumps(passage).encode()


class NpyStream:
    """Appends rows to a .npy file; closing writes their number into its header.

    `row_shape` () is of plain numbers.
    """

    def __init__(self, path: Path, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.count = 0
        self._row_shape = row_shape
        self._stream = open(path, 'wb')  # noqa: SIM115 - closed by close()
        self._stream.write(self._header())

    def append(self, rows: ArrayLike) -> None:
        """Add rows, (n, *row_shape); they are converted to the stream's dtype."""
        array: NDArray[np.generic] = np.ascontiguousarray(rows, dtype=self.dtype)
        block = array.reshape(-1, *self._row_shape)
        self._stream.write(block.tobytes())
        self.count += len(block)

    def close(self, complete: bool = True) -> None:
        """Close the file; `complete` writes its header."""
        if complete:
            self._stream.seek(0)
            self._stream.write(self._header())
        self._stream.close()

    def _header(self) -> bytes:
        """The header for the rows so far.

        NumPy pads it, so its length does not depend on their number.
        """
        buffer = io.BytesIO()
        header = {
            'descr': np.lib.format.dtype_to_descr(self.dtype),
            'fortran_order': False,
            'shape': (self.count, *self._row_shape),
        }
        np.lib.format.write_array_header_1_0(buffer, header)
        return buffer.getvalue()


class ShardWriter(ABC, Generic[SettingsT, Vectors]):
    """A context in which passages and their vectors are appended to a shard.

    The shard appears if no error ends the context. Subclasses open their streams in `begin` and
    write vectors in `write`; this class owns docids, texts and checksums, and makes the folder
    `target` appear, which must not exist.
    """

    def __init__(self, target: Path, settings: SettingsT) -> None:
        self._target = target
        self._settings = settings
        self._digest = hashlib.sha256()
        self._count = 0
        # A list of integers takes five times as much memory.
        self._text_offsets = array('q')
        self._streams: list[NpyStream] = []

    @abstractmethod
    def begin(self) -> None:
        """Open the streams of the vectors, with `stream`."""

    @abstractmethod
    def write(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Write the passages' vectors.

        Raises DamagedFileError for one that cannot be stored, naming its passage.
        """

    def finish(self) -> Overlap | None:
        """Called once all files are closed: what the stored vectors lose, if that is measured.

        Files that are not part of the shard are removed here.
        """
        return None

    def stream(self, name: str, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> NpyStream:
        """A file of the shard, closed with it."""
        self._streams.append(NpyStream(self._folder / name, dtype, row_shape))
        return self._streams[-1]

    def __enter__(self) -> Self:
        self._context = atomic_folder(self._target)
        self._folder = self._context.__enter__()
        self._docids: IO[str] = open(self._folder / DOCIDS, 'w', encoding='utf-8', newline='\n')
        self._texts: IO[bytes] | None = None
        if self._settings.texts:
            self._texts = open(self._folder / TEXTS, 'wb')
        self.begin()
        return self

    def append(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        """Add passages and their vectors."""
        self.write(passages, vectors)
        for passage in passages:
            self._digest.update(digested(passage))
            self._docids.write(f'{passage.docid}\n')
            if self._texts is not None:
                self._text_offsets.append(self._texts.tell())
                stored = {'id': passage.docid, 'contents': passage.text}
                line = json.dumps(stored, ensure_ascii=False)
                self._texts.write(line.encode() + b'\n')
        self._count += len(passages)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        is_complete = kind is None
        self._docids.close()
        if self._texts is not None:
            self._texts.close()
        for stream in self._streams:
            stream.close(complete=is_complete)
        if is_complete:
            self._write_record()
        return self._context.__exit__(kind, error, traceback)

    def _write_record(self) -> None:
        """Write what lists the other files."""
        if self._texts is not None:
            np.save(self._folder / TEXT_OFFSETS, np.asarray(self._text_offsets, dtype=np.int64))
        overlap = self.finish()
        files = {path.name: digest(path) for path in sorted(self._folder.iterdir())}
        record = ShardRecord(
            self._target.name, self._count, self._digest.hexdigest(), files, overlap
        )
        write_json(self._folder / SHARD, record)

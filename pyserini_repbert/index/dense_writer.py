"""The dense bundle, for writing: shards that appear only when whole, in memory that does not grow with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import atomic_folder, digest
from pyserini_repbert.index.dense import DOCIDS, TEXT_OFFSETS, TEXTS, VECTORS
from pyserini_repbert.index.manifest import SHARD, Settings, ShardRecord, write_json
from pyserini_repbert.passages import Passage


def shard_name(number: int) -> str:
    """'shard-00007'"""
    return f'shard-{number:05d}'


class CorpusDigest:
    """sha256 over passages, so that a resumed run notices another corpus."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, passage: Passage) -> None:
        """Count a passage in."""
        self._sum.update(json.dumps(passage).encode())

    def hexdigest(self) -> str:
        """The checksum of all passages so far."""
        return self._sum.hexdigest()


class ShardWriter:
    """A context in which passages and their vectors are appended to a shard; it appears when the context ends well.

    Parameters
    ----------
    target : the shard's folder, which must not exist
    settings : of the bundle
    """

    def __init__(self, target: Path, settings: Settings) -> None:
        self._target = target
        self._settings = settings
        self._digest = CorpusDigest()
        self._count = 0
        self._text_offsets: list[int] = []

    def __enter__(self) -> ShardWriter:
        self._context = atomic_folder(self._target)
        self._folder = self._context.__enter__()
        self._vectors: IO[bytes] = open(self._folder / VECTORS, 'wb')
        self._vectors.write(_npy_header(0, self._settings))
        self._docids: IO[str] = open(self._folder / DOCIDS, 'w', encoding='utf-8', newline='\n')
        self._texts: IO[bytes] | None = open(self._folder / TEXTS, 'wb') if self._settings.texts else None
        return self

    def append(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        """Add passages and their vectors, float32 (n, d). Raises DamagedFileError for a vector that is not finite."""
        stored = vectors.astype(self._settings.dtype)
        if not np.isfinite(stored).all():
            bad = passages[int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])].docid
            raise DamagedFileError(
                f"the vector of passage '{bad}' is not finite in {self._settings.dtype}: "
                'check the checkpoint, or store and compute in float32'
            )
        self._vectors.write(np.ascontiguousarray(stored).tobytes())
        for passage in passages:
            self._digest.add(passage)
            self._docids.write(f'{passage.docid}\n')
            if self._texts is not None:
                self._text_offsets.append(self._texts.tell())
                line = json.dumps({'id': passage.docid, 'contents': passage.text}, ensure_ascii=False)
                self._texts.write(line.encode() + b'\n')
        self._count += len(passages)

    def __exit__(self, *error: Any) -> bool | None:
        self._docids.close()
        if self._texts is not None:
            self._texts.close()
        if error[0] is None:
            self._vectors.seek(0)
            self._vectors.write(_npy_header(self._count, self._settings))
        self._vectors.close()
        if error[0] is None:
            if self._texts is not None:
                np.save(self._folder / TEXT_OFFSETS, np.asarray(self._text_offsets, dtype=np.int64))
            files = {path.name: digest(path) for path in sorted(self._folder.iterdir())}
            record = ShardRecord(self._target.name, self._count, self._digest.hexdigest(), files)
            write_json(self._folder / SHARD, record)
        return self._context.__exit__(*error)


def _npy_header(count: int, settings: Settings) -> bytes:
    """The header of a .npy file of `count` vectors; NumPy pads it, so that its length does not depend on the count."""
    import io

    buffer = io.BytesIO()
    header = {
        'descr': np.lib.format.dtype_to_descr(np.dtype(settings.dtype)),
        'fortran_order': False,
        'shape': (count, settings.dimension),
    }
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()

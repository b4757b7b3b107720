"""The dense bundle, for reading: memory-mapped vectors and docids in shards, and the passages' texts where stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import DocidColumn
from pyserini_repbert.index.manifest import Manifest, ShardRecord, read_manifest, verify_files
from pyserini_repbert.passages import Passage

VECTORS = 'vectors.npy'
DOCIDS = 'docids.txt'
TEXTS = 'texts.jsonl'
TEXT_OFFSETS = 'texts.offsets.npy'


class DenseShard:
    """One shard: `vectors` float32 or float16 (count, d), memory-mapped; `docids` by row; texts by row."""

    def __init__(self, folder: Path, record: ShardRecord, dimension: int) -> None:
        self.folder = folder
        # 'c': a view that PyTorch takes without complaint; what anybody wrote to it would not reach the file
        self.vectors: NDArray[np.floating] = np.load(folder / VECTORS, mmap_mode='c')
        if self.vectors.shape != (record.count, dimension):
            raise DamagedFileError(
                f'{folder / VECTORS} has shape {self.vectors.shape}, expected {(record.count, dimension)}: '
                'build the index again'
            )
        self.docids = DocidColumn(folder / DOCIDS, record.count)

    @cached_property
    def _text_offsets(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.load(self.folder / TEXT_OFFSETS, mmap_mode='r')
        return found

    def text(self, row: int) -> str:
        """The passage's text."""
        with open(self.folder / TEXTS, 'rb') as stream:
            stream.seek(int(self._text_offsets[row]))
            return str(json.loads(stream.readline())['contents'])


class DenseBundle:
    """An index folder with a manifest.

    Parameters
    ----------
    folder : the index folder
    verify : compare all files with their sha256 (the first time; then only what has changed)

    Raises
    ------
    InputError
        where there is no index
    DamagedFileError
        where a file is missing or is not the one that the manifest describes
    """

    def __init__(self, folder: StrPath, verify: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest = read_manifest(folder)
        self.settings = self.manifest.settings
        self.shards: list[DenseShard] = []
        for record in self.manifest.shards:
            place = self.folder / record.folder
            if verify:
                verify_files(place, record)
            self.shards.append(DenseShard(place, record, self.settings.dimension))
        self._starts = np.cumsum([0, *(record.count for record in self.manifest.shards)])

    def __len__(self) -> int:
        return self.manifest.count

    def docid(self, row: int) -> str:
        """The docid of a row counted over all shards."""
        shard = int(np.searchsorted(self._starts, row, side='right')) - 1
        return self.shards[shard].docids[row - int(self._starts[shard])]

    def blocks(self, size: int) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """(first row, vectors) of at most `size` rows each, in order, memory-mapped."""
        for start, shard in zip(self._starts.tolist(), self.shards, strict=False):
            for first in range(0, len(shard.docids), size):
                yield start + first, shard.vectors[first : first + size]

    @property
    def has_texts(self) -> bool:
        """Whether the passages' texts are stored."""
        return self.settings.texts

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Texts in the order asked for; None for a docid that is not in the bundle, or where no texts are stored."""
        return [self._text(docid) if self.has_texts else None for docid in docids]

    def _text(self, docid: str) -> str | None:
        for shard in self.shards:
            row = shard.docids.row(docid)
            if row is not None:
                return shard.text(row)
        return None

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where no texts are stored."""
        if not self.has_texts:
            raise DamagedFileError(f'index {self.folder} holds no texts: encode the corpus with --store-text')
        for shard in self.shards:
            with open(shard.folder / TEXTS, encoding='utf-8') as stream:
                for line in stream:
                    record = json.loads(line)
                    yield Passage(record['id'], record['contents'])

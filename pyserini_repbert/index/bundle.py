"""What dense and EPIC bundles share when they are read: shards of docids and texts, checked against their manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import Directory, DocidColumn
from pyserini_repbert.index.manifest import BundleSettings, Manifest, ShardRecord, read_manifest, verify_files
from pyserini_repbert.passages import Passage

DOCIDS = 'docids.txt'
TEXTS = 'texts.jsonl'
TEXT_OFFSETS = 'texts.offsets.npy'


class Shard:
    """One shard: `docids` by row, and texts by row where they are stored."""

    def __init__(self, folder: Path, record: ShardRecord) -> None:
        self.folder = folder
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


_Settings = TypeVar('_Settings', bound=BundleSettings)
_Shard = TypeVar('_Shard', bound=Shard)


class Bundle(Generic[_Settings, _Shard]):
    """An index folder with a manifest; subclasses say which settings it has and how a shard is opened."""

    settings_kind: type[_Settings]

    def __init__(self, folder: StrPath, verify: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest[_Settings] = read_manifest(folder, self.settings_kind)
        self.settings = self.manifest.settings
        self.shards: list[_Shard] = []
        for record in self.manifest.shards:
            place = self.folder / record.folder
            if verify:
                verify_files(place, record)
            self.shards.append(self.open_shard(place, record))
        self._starts = np.cumsum([0, *(record.count for record in self.manifest.shards)])

    def open_shard(self, folder: Path, record: ShardRecord) -> _Shard:
        """Open one shard. Raises DamagedFileError where its files do not have the form that the manifest gives."""
        raise TypeError(f'{type(self).__name__} does not say how its shards are opened')

    def __len__(self) -> int:
        return self.manifest.count

    def docid(self, row: int) -> str:
        """The docid of a row counted over all shards."""
        shard = int(np.searchsorted(self._starts, row, side='right')) - 1
        return self.shards[shard].docids[row - int(self._starts[shard])]

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """int64 (n,): the row of each docid, counted over all shards; -1 for a docid that is not here.

        The first call reads and sorts all docids' hashes (16 bytes a docid).
        """
        return self._directory.rows(docids)

    @cached_property
    def _directory(self) -> Directory:
        return Directory([shard.docids for shard in self.shards])

    @property
    def has_texts(self) -> bool:
        """Whether the passages' texts are stored."""
        return self.settings.texts

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Texts in the order asked for; None for a docid that is not in the bundle, or where no texts are stored."""
        if not self.has_texts:
            return [None] * len(docids)
        return [None if row < 0 else self._text(row) for row in self.rows(docids).tolist()]

    def _text(self, row: int) -> str:
        shard = int(np.searchsorted(self._starts, row, side='right')) - 1
        return self.shards[shard].text(row - int(self._starts[shard]))

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where no texts are stored."""
        if not self.has_texts:
            raise DamagedFileError(f'index {self.folder} holds no texts: build it with --store-text')
        for shard in self.shards:
            with open(shard.folder / TEXTS, encoding='utf-8') as stream:
                for line in stream:
                    record = json.loads(line)
                    yield Passage(record['id'], record['contents'])

"""The common reader of dense and EPIC bundles: shards of docids and texts, checked against their manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import DocidColumn, Docids, mapped_bytes
from pyserini_repbert.index.manifest import read_manifest, verify_files
from pyserini_repbert.index.npy_stream import mapped
from pyserini_repbert.index.records import DOCIDS, TEXT_OFFSETS, TEXTS, BundleSettings, Manifest, ShardRecord


class Shard:
    """One shard: `docids` by row, and texts by row where they are stored.

    Raises DamagedFileError where a file that the record names is missing.
    """

    def __init__(self, folder: Path, record: ShardRecord) -> None:
        self.folder = folder
        self._count = record.count
        for name in record.files:
            if not (folder / name).is_file():
                raise DamagedFileError(f'{folder / name} is missing: restore the file, or build the index again')
        # all files are mapped now: an index that is replaced stays readable where it is open
        self.docids = DocidColumn(folder / DOCIDS, record.count)
        if TEXTS in record.files:
            self._text_offsets: NDArray[np.int64] = mapped(folder / TEXT_OFFSETS, np.int64, (record.count,))
            self._texts = mapped_bytes(folder / TEXTS)

    def text(self, row: int) -> str:
        """The passage's text. Raises DamagedFileError where the stored line is missing or of another docid."""
        start = int(self._text_offsets[row])
        end = self._texts.find(b'\n', start) if start >= 0 else -1
        if end < 0:
            raise self._misplaced(row)
        return self._passage(row, self._texts[start:end]).text

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where texts and docids do not match."""
        row = 0
        start = 0
        while (end := self._texts.find(b'\n', start)) >= 0:
            yield self._passage(row, self._texts[start:end])
            row, start = row + 1, end + 1
        if row != self._count or start != len(self._texts):
            raise self._misplaced(row)

    def _passage(self, row: int, line: bytes) -> Passage:
        try:
            record = json.loads(line)
            found = Passage(record['id'], record['contents'])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._misplaced(row) from error
        if row >= self._count or found.docid != self.docids[row] or not isinstance(found.text, str):
            raise self._misplaced(row)
        return found

    def _misplaced(self, row: int) -> DamagedFileError:
        return DamagedFileError(
            f'{self.folder / TEXTS} does not hold passage {row + 1} of {self._count} where it should: '
            'see `index check`, and build the index again'
        )


_Settings = TypeVar('_Settings', bound=BundleSettings)
_Shard = TypeVar('_Shard', bound=Shard)


class Bundle(Generic[_Settings, _Shard]):
    """An index folder with a manifest; subclasses name the class of its settings and open its shards."""

    settings_kind: type[_Settings]

    def __init__(self, folder: StrPath, verify: bool = True) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest[_Settings] = read_manifest(folder, self.settings_kind)
        self.settings = self.manifest.settings
        self.shards: list[_Shard] = []
        try:
            for record in self.manifest.shards:
                place = self.folder / record.folder
                if verify:
                    verify_files(place, record)
                self.shards.append(self.open_shard(place, record))
        except DamagedFileError as error:
            if read_manifest(folder, self.settings_kind) != self.manifest:
                raise InputError(f'index {folder} was replaced while it was being opened: try again') from error
            raise
        self._starts = np.cumsum([0, *(record.count for record in self.manifest.shards)])
        self._docids = Docids([shard.docids for shard in self.shards])

    def open_shard(self, folder: Path, record: ShardRecord) -> _Shard:
        """Open one shard. Raises DamagedFileError where its files do not have the form that the manifest gives."""
        raise TypeError(f'{type(self).__name__} does not say how its shards are opened')

    def __len__(self) -> int:
        return self.manifest.count

    def docid(self, row: int) -> str:
        """The docid of a row, numbered across all shards. Raises InputError for a row that does not exist."""
        if not 0 <= row < len(self):
            raise InputError(f'row {row} was asked for, index {self.folder} has rows 0 to {len(self) - 1}')
        shard, place = self._docids.column(row)
        return self.shards[shard].docids[place]

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,): faster than one by one. Raises InputError for a row that does not exist."""
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise InputError(f'rows {rows.min()} to {rows.max()}: index {self.folder} has 0 to {len(self) - 1}')
        return self._docids.many(rows)

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each docid, numbered across all shards, int64 (n,); -1 for a docid that the bundle lacks.

        The first call reads all docids and keeps their hashes, sorted (12 bytes a docid).
        """
        return self._docids.rows(docids)

    @property
    def has_texts(self) -> bool:
        """Whether the passages' texts are stored."""
        return self.settings.texts

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Texts in the order of `docids`; None for a docid that the bundle lacks, and where no texts are stored.

        Raises DamagedFileError where a stored text is of another docid.
        """
        if not self.has_texts:
            return [None] * len(docids)
        return [None if row < 0 else self._text(row) for row in self.rows(docids).tolist()]

    def _text(self, row: int) -> str:
        shard, place = self._docids.column(row)
        return self.shards[shard].text(place)

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where no texts are stored."""
        if not self.has_texts:
            raise DamagedFileError(f'index {self.folder} holds no texts: store them', parameters=('store_text',))
        for shard in self.shards:
            yield from shard.passages()

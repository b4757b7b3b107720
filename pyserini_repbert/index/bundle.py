"""The common reader of dense and EPIC bundles: shards of docids and texts, checked against their manifest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import Directory, DocidColumn
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
        self.docids = DocidColumn(folder / DOCIDS, record.count)

    @cached_property
    def _text_offsets(self) -> NDArray[np.int64]:
        return mapped(self.folder / TEXT_OFFSETS, np.int64, (self._count,))

    def text(self, row: int) -> str:
        """The passage's text. Raises DamagedFileError where the stored line is missing or of another docid."""
        offset = int(self._text_offsets[row])
        with open(self.folder / TEXTS, 'rb') as stream:
            if 0 <= offset < stream.seek(0, os.SEEK_END):
                stream.seek(offset)
                return self._passage(row, stream.readline()).text
        raise self._misplaced(row)

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where texts and docids do not match."""
        row = 0
        with open(self.folder / TEXTS, 'rb') as stream:
            for row, line in enumerate(stream, 1):
                yield self._passage(row - 1, line)
        if row != self._count:
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
        """The docid of a row, numbered across all shards. Raises InputError for a row that does not exist."""
        if not 0 <= row < len(self):
            raise InputError(f'row {row} was asked for, index {self.folder} has rows 0 to {len(self) - 1}')
        shard = int(np.searchsorted(self._starts, row, side='right')) - 1
        return self.shards[shard].docids[row - int(self._starts[shard])]

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,): faster than one by one. Raises InputError for a row that does not exist."""
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise InputError(f'rows {rows.min()} to {rows.max()}: index {self.folder} has 0 to {len(self) - 1}')
        numbers = np.searchsorted(self._starts, rows, side='right') - 1
        found = [''] * len(rows)
        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            own: list[str] = self.shards[number].docids.many(rows[places] - self._starts[number])
            if len(places) == len(rows):
                return own
            for place, docid in zip(places.tolist(), own, strict=True):
                found[place] = docid
        return found

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each docid, numbered across all shards, int64 (n,); -1 for a docid that the bundle lacks.

        The first call reads all docids and keeps a table of their hashes (12 to 16 bytes a docid).
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
        """Texts in the order of `docids`; None for a docid that the bundle lacks, and where no texts are stored.

        Raises DamagedFileError where a stored text is of another docid.
        """
        if not self.has_texts:
            return [None] * len(docids)
        return [None if row < 0 else self._text(row) for row in self.rows(docids).tolist()]

    def _text(self, row: int) -> str:
        shard = int(np.searchsorted(self._starts, row, side='right')) - 1
        return self.shards[shard].text(row - int(self._starts[shard]))

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError where no texts are stored."""
        if not self.has_texts:
            raise DamagedFileError(f'index {self.folder} holds no texts: store them', parameters=('store_text',))
        for shard in self.shards:
            yield from shard.passages()

"""What all bundles share: shards of docids and texts, checked by their manifest."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import DocidColumn, Docids, mapped_bytes
from pyserini_repbert.index.manifest import read_manifest, verify_files
from pyserini_repbert.index.records import (
    DOCIDS,
    TEXT_OFFSETS,
    TEXTS,
    BundleSettings,
    Manifest,
    SettingsT,
    ShardRecord,
)

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import Passage

# Raised by np.load for damaged headers, as observed.
_UNREADABLE = (
    ValueError,
    EOFError,
    OSError,
    SyntaxError,
    TypeError,
    OverflowError,
    MemoryError,
    TokenError,
)


def mapped(
    path: Path,
    dtype: DTypeLike,
    shape: tuple[int, ...],
    mode: Literal['r', 'c'] = 'r',
    advice: str = 'build the index again',
) -> NDArray[Any]:
    """A .npy file as a plain array over mapped memory.

    Parameters
    ----------
    path : of the file
    dtype, shape : what the file must hold
    mode : 'r', read-only, or 'c', copy-on-write
    advice : what to do about another file

    Raises DamagedFileError for a file that is missing or holds something else.
    """
    # An array without elements cannot be mapped.
    mmap_mode = None if 0 in shape else mode
    try:
        array: NDArray[Any] = np.load(path, mmap_mode=mmap_mode).view(np.ndarray)
    except FileNotFoundError as error:
        raise DamagedFileError(f'{path} is missing: {advice}, or wait until it is built') from error
    except _UNREADABLE as error:
        raise DamagedFileError(f'{path} is not an .npy file ({error}): {advice}') from error
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        raise DamagedFileError(
            f'{path} holds {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}: '
            f'{advice}'
        )
    return array


class Shard(ABC):
    """One shard: `docids` by row, and texts by row if they are stored."""

    def __init__(self, folder: Path, record: ShardRecord, settings: BundleSettings) -> None:
        self.folder = folder
        self._count = record.count
        for name in record.files:
            if not (folder / name).is_file():
                raise DamagedFileError(
                    f'{folder / name} is missing: restore the file, or build the index again'
                )
        # All files are mapped now, so an open index stays readable after it is replaced.
        self.docids = DocidColumn(folder / DOCIDS, record.count)
        if TEXTS in record.files:
            offsets = mapped(folder / TEXT_OFFSETS, np.int64, (record.count,))
            self._text_offsets: NDArray[np.int64] = offsets
            self._texts = mapped_bytes(folder / TEXTS)

    @abstractmethod
    def check_values(self) -> None:
        """Read all vectors. Raises DamagedFileError for those that no model gives."""

    def text(self, row: int) -> str:
        """The passage's text.

        Raises DamagedFileError if the stored line is missing or of another docid.
        """
        start = int(self._text_offsets[row])
        end = self._texts.find(b'\n', start) if start >= 0 else -1
        if end < 0:
            raise self._misplaced(row)
        return self._passage(row, self._texts[start:end]).text

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError if texts and docids do not match."""
        row = 0
        start = 0
        while (end := self._texts.find(b'\n', start)) >= 0:
            yield self._passage(row, self._texts[start:end])
            row += 1
            start = end + 1
        if row != self._count or start != len(self._texts):
            raise self._misplaced(row)

    def _passage(self, row: int, line: bytes) -> Passage:
        # Most searches read no text from here, and need no readers of corpora.
        from pyserini_repbert.data.passages import Passage

        try:
            record = json.loads(line)
            passage = Passage(record['id'], record['contents'])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._misplaced(row) from error
        is_expected = row < self._count and passage.docid == self.docids[row]
        if not is_expected or not isinstance(passage.text, str):
            raise self._misplaced(row)
        return passage

    def _misplaced(self, row: int) -> DamagedFileError:
        return DamagedFileError(
            f'{self.folder / TEXTS} does not hold passage {row + 1} of {self._count} where it '
            'should: see `index check`, and build the index again'
        )


_Shard = TypeVar('_Shard', bound=Shard)


class Bundle(Generic[SettingsT, _Shard]):
    """An index folder with a manifest.

    Subclasses name the classes of its settings and of its shards.

    Parameters
    ----------
    folder : of the index
    verify : compare all files with their sha256, later only changed files
    part : a manifest of some of its shards, which alone are opened
    """

    settings_kind: type[SettingsT]
    shard_kind: type[_Shard]

    def __init__(
        self, folder: StrPath, verify: bool = True, part: Manifest[SettingsT] | None = None
    ) -> None:
        self.folder = Path(folder)
        self.manifest: Manifest[SettingsT] = part or read_manifest(folder, self.settings_kind)
        self.settings = self.manifest.settings
        self.shards: list[_Shard] = []
        try:
            for record in self.manifest.shards:
                shard_folder = self.folder / record.folder
                if verify:
                    verify_files(shard_folder, record)
                self.shards.append(self.shard_kind(shard_folder, record, self.settings))
        except DamagedFileError as error:
            if part is None and read_manifest(folder, self.settings_kind) != self.manifest:
                raise InputError(
                    f'index {folder} was replaced while it was being opened: try again'
                ) from error
            raise
        self._docids = Docids([shard.docids for shard in self.shards])

    def __len__(self) -> int:
        return self.manifest.count

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows, int64 (n,): faster than one by one.

        Raises InputError for a row that does not exist.
        """
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise InputError(
                f'rows {rows.min()} to {rows.max()}: index {self.folder} has 0 to {len(self) - 1}'
            )
        return self._docids.many(rows)

    def rows(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each docid, numbered across all shards, int64 (n,).

        It is -1 for a docid that the bundle lacks. The first call reads all docids and keeps their
        hashes, sorted (12 bytes a docid).
        """
        return self._docids.rows(docids)

    @property
    def has_texts(self) -> bool:
        """Whether the passages' texts are stored."""
        return self.settings.texts

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Texts in the order of `docids`.

        None for a docid that the bundle lacks, and if no texts are stored.
        """
        if not self.settings.texts:
            return [None] * len(docids)
        return [self._text(row) for row in self.rows(docids).tolist()]

    def _text(self, row: int) -> str | None:
        """The text of a row, numbered across all shards; None for -1."""
        if row < 0:
            return None
        position = self._docids.column(row)
        return self.shards[position.column].text(position.row)

    def passages(self) -> Iterator[Passage]:
        """All passages, in order. Raises DamagedFileError if no texts are stored."""
        if not self.settings.texts:
            raise DamagedFileError(
                f'index {self.folder} holds no texts: store them', parameters=('store_text',)
            )
        for shard in self.shards:
            yield from shard.passages()

"""Whether an index is, to the bit, what was written: every file of every kind of index is read
and compared.
"""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS, summed_names, verify_checksums
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.ann import ANN, AnnIndex
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.faiss_layout import FaissFolder, is_faiss_folder
from pyserini_repbert.index.manifest import (
    MANIFEST,
    SETTINGS,
    SHARD,
    manifest_kind,
    rendered,
    verify_files,
)


def check_index(folder: StrPath) -> str:
    """Compare all files of an index with their recorded checksums, and open it.

    Returns a line that says what the index holds, and a second one for its approximate index if
    there is one. All files are read: checksums remembered from earlier checks are not trusted.
    """
    place = Path(folder)
    if (place / MANIFEST).is_file() or not (place / CHECKSUMS).is_file():
        if not (place / MANIFEST).is_file() and (
            is_faiss_folder(place) or any(place.glob('segments_*'))
        ):
            raise InputError(
                f'index {place} has no file {CHECKSUMS} to compare it with: another program wrote '
                f'it'
            )
        return _check_bundle(place)
    count = verify_checksums(place, summed_names(place), remembered=False)
    if not is_faiss_folder(place):
        return f'{place}: whole, {count} files'
    faiss = FaissFolder(place, verify=False)
    return f'{place}: whole, {len(faiss)} passages x {faiss.dimension}'


def _check_bundle(place: Path) -> str:
    kind = EpicBundle if manifest_kind(place) == EpicBundle.settings_kind.kind else DenseBundle
    bundle = kind(place, verify=False)
    for record, shard in zip(bundle.manifest.shards, bundle.shards, strict=True):
        verify_files(place / record.folder, record, remembered=False)
        _compare(place / record.folder / SHARD, record)
        shard.docids.verify()
    _compare(place / SETTINGS, bundle.settings)
    if isinstance(bundle, EpicBundle):
        size = f'{bundle.settings.prune or bundle.settings.vocabulary} {bundle.settings.weights}'
    else:
        size = f'{bundle.settings.dimension} {bundle.settings.dtype}'
    line = f"{place}: whole, {len(bundle)} passages x {size}, encoder '{bundle.settings.encoder}'"
    if isinstance(bundle, DenseBundle) and (place / ANN).exists():
        line += f'\n{place / ANN}: whole, {AnnIndex(bundle, remembered=False).record}'
    return line


def _compare(path: Path, record: object) -> None:
    """Compare a record's file with the record as the manifest has it."""
    wrong = 'is missing' if not path.is_file() else 'is not what the manifest says'
    if not path.is_file() or path.read_bytes() != rendered(record).encode():
        raise DamagedFileError(f'{path} {wrong}: restore the file, or build the index again')

"""Whether an index is identical to what was written, to the bit: every file is read and compared.

What no index holds is refused, too, signed or not: `index.arrays`.
"""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS, digest, summed_names, verify_checksums
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_form import is_faiss_folder
from pyserini_repbert.index.faiss_layout import FaissFolder
from pyserini_repbert.index.manifest import (
    MANIFEST,
    SETTINGS,
    SHARD,
    manifest_kind,
    rendered,
    verify_files,
)
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.lucene.index_record import recorded_language


def check_index(folder: StrPath) -> str:
    """Compare all files of an index with their recorded checksums, and open it.

    Returns a line that says what the index holds, and further ones for what extensions keep there,
    if there is any. All files are read: checksums remembered from earlier checks are not trusted.

    Raises InputError for an index of another program, which has no checksums.
    """
    folder = Path(folder)
    has_manifest = (folder / MANIFEST).is_file()
    has_checksums = (folder / CHECKSUMS).is_file()
    is_of_others = is_faiss_folder(folder) or any(folder.glob('segments_*'))
    if has_manifest:
        return _check_bundle(folder)
    if has_checksums:
        return _check_files(folder)
    if is_of_others:
        raise InputError(
            f'index {folder} has no file {CHECKSUMS} to compare it with: another program wrote it'
        )
    # Opening it reports what is missing.
    return _check_bundle(folder)


def _check_files(folder: Path) -> str:
    """Check an index of Lucene or FAISS that this package wrote."""
    count = verify_checksums(folder, summed_names(folder), remembered=False)
    if not is_faiss_folder(folder):
        language = recorded_language(folder)
        suffix = f", language '{language}'" if language else ''
        return f'{folder}: intact, {count} files{suffix}'
    faiss = FaissFolder(folder, verify=False)
    return f'{folder}: intact, {len(faiss)} passages x {faiss.dimension}'


def _check_bundle(folder: Path) -> str:
    has_term_weights = manifest_kind(folder) == TermWeightsBundle.settings_kind.kind
    kind = TermWeightsBundle if has_term_weights else DenseBundle
    bundle = kind(folder, verify=False)
    for record, shard in zip(bundle.manifest.shards, bundle.shards, strict=True):
        verify_files(folder / record.folder, record, remembered=False)
        _compare(folder / record.folder / SHARD, record)
        shard.docids.verify()
        shard.check_values()
    _compare(folder / SETTINGS, bundle.settings)
    if isinstance(bundle, TermWeightsBundle):
        size = f'{_terms_text(bundle.settings)} {bundle.settings.weights}'
    else:
        size = f'{bundle.settings.dimension} {bundle.settings.dtype}'
    lines = [
        f"{folder}: intact, {len(bundle)} passages x {size}, encoder '{bundle.settings.encoder}'"
    ]
    for part in loaded('in_bundles'):
        lines += part.check(folder, digest(folder / MANIFEST))
    return '\n'.join(lines)


def _terms_text(settings: TermWeightsSettings) -> str:
    """How many terms a passage has at most: '1000', or 'all'."""
    if settings.layout == 'all':
        return str(settings.vocabulary)
    return str(settings.prune or 'all')


def _compare(path: Path, record: object) -> None:
    """Compare a record's file with the record as the manifest has it."""
    wrong = 'is missing' if not path.is_file() else 'is not what the manifest says'
    if not path.is_file() or path.read_bytes() != rendered(record).encode():
        raise DamagedFileError(f'{path} {wrong}: restore the file, or build the index again')

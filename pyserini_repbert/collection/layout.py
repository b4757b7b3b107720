"""The files of a collection's folder: a writer removes no other, and refuses links.

A link inside a collection would let a writer remove or overwrite what it leads to. A collection
that lies on another disk is linked as a whole.
"""

from __future__ import annotations

import re
from pathlib import Path

from pyserini_repbert.collection.adaptation import LEARNING_LOCK
from pyserini_repbert.collection.judgments import JUDGMENTS
from pyserini_repbert.collection.locks import WRITER_LOCK
from pyserini_repbert.collection.side_folders import LUCENES_FORM, SHARDS_FORM, SIDE_FORM, Side
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.folder_forms import TEMPORARY, FolderForm
from pyserini_repbert.index.ann import ANN_FILES, LOCK as ANN_LOCK
from pyserini_repbert.index.manifest import COLLECTION_FILE
from pyserini_repbert.index.neighbours import NEIGHBOURS_FILES
from pyserini_repbert.search.adapted_folder import ADAPTED_FORM
from pyserini_repbert.systems.registry import representations

_NUMBER = '[0-9]{6,}'
# The folders of further models whose vectors have an approximate index.
_ANN_FOLDERS = tuple(kind.name for kind in representations() if kind.has_ann)
_FURTHER_ANN = FolderForm('folder of an approximate index', (re.escape(ANN_LOCK), *ANN_FILES))

_GENERATIONS = FolderForm(
    'folder of generations',
    (
        rf'\.?{_NUMBER}\.json',
        rf'{_NUMBER}\.json\.record\.json',
        rf'\.{_NUMBER}\.json\.record\.json\.{TEMPORARY}',
    ),
)
_LEARNED = FolderForm(
    'folder of what was learned', ADAPTED_FORM.below(rf'({_NUMBER}|\.{_NUMBER}\.{TEMPORARY})')
)
_SIDES = f'({"|".join(re.escape(name) for side in Side for name in (side, side.next))})'
COLLECTION_FORM = FolderForm(
    'collection',
    (
        # With the files that SQLite keeps beside its own.
        rf'({re.escape(COLLECTION_FILE)}|{re.escape(JUDGMENTS)})(-wal|-shm|-journal)?',
        *map(re.escape, (WRITER_LOCK, LEARNING_LOCK, ANN_LOCK)),
        *SHARDS_FORM.below('shards'),
        *_GENERATIONS.below('generations'),
        *LUCENES_FORM.below('lucene'),
        *_LEARNED.below('adapted'),
        *ANN_FILES,
        *_FURTHER_ANN.below(f'({"|".join(_ANN_FOLDERS)})'),
        *NEIGHBOURS_FILES,
        *SIDE_FORM.below(_SIDES),
    ),
)


def ann_folders(folder: Path) -> list[Path]:
    """The folders in which a collection may have an approximate index, `ann`: the collection's, of
    dense vectors, and one for each further model that has vectors.
    """
    return [folder, *(folder / name for name in _ANN_FOLDERS)]


def check_layout(folder: Path) -> None:
    """Raise DamagedFileError for an entry that no collection has, and for a link."""
    name = COLLECTION_FORM.foreign_entry(folder)
    if name is None:
        return
    if (folder / name).is_symlink():
        raise DamagedFileError(
            f'{folder / name} is a link, which no collection has: put what it leads to in its '
            'place, or move the whole collection and link that'
        )
    raise DamagedFileError(f'{folder / name} is not part of a collection: move it out of {folder}')

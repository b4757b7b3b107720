"""The files of a collection's folder: a writer removes no other, and refuses links.

Through a link inside a collection, a writer could remove or overwrite the link's target. To keep a
collection on another disk, link the whole folder.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pyserini_repbert.collection.adaptation import JUDGMENTS, LEARNING_LOCK
from pyserini_repbert.collection.locks import WRITER_LOCK
from pyserini_repbert.collection.shards import SHARD_FORM
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extension import loaded
from pyserini_repbert.extension_words import missing_extension_of_file
from pyserini_repbert.folder_forms import TEMPORARY, FolderForm
from pyserini_repbert.index.manifest import COLLECTION_FILE
from pyserini_repbert.lucene.lucene_form import LUCENE_FILES
from pyserini_repbert.search.adapted_form import ADAPTED_FORM

_NUMBER = '[0-9]{6,}'
_UNFINISHED = r'\.unfinished'
SHARD_FOLDER = re.compile(f'[0-9a-f]{{16}}|{_UNFINISHED}')
LUCENE_FOLDER = re.compile(f'{_NUMBER}|{_UNFINISHED}')
_LUCENE_INDEX = FolderForm('Lucene index', LUCENE_FILES)
SHARDS_FORM = FolderForm('folder of shards', SHARD_FORM.below(f'({SHARD_FOLDER.pattern})'))
LUCENES_FORM = FolderForm(
    'folder of Lucene indexes', _LUCENE_INDEX.below(f'({LUCENE_FOLDER.pattern})')
)

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
_OWN_FILES = (
    # With the files that SQLite keeps beside its own.
    rf'({re.escape(COLLECTION_FILE)}|{re.escape(JUDGMENTS)})(-wal|-shm|-journal)?',
    *map(re.escape, (WRITER_LOCK, LEARNING_LOCK)),
    *SHARDS_FORM.below('shards'),
    *_GENERATIONS.below('generations'),
    *LUCENES_FORM.below('lucene'),
    *_LEARNED.below('adapted'),
)


@cache
def collection_form() -> FolderForm:
    """The files of a collection, with what extensions keep there."""
    files = list(_OWN_FILES)
    for part in loaded('in_collections'):
        files += part.files
    return FolderForm('collection', tuple(files))


def check_layout(folder: Path) -> None:
    """Raise DamagedFileError for an entry that no collection has, and for a link."""
    name = collection_form().foreign_entry(folder)
    if name is None:
        return
    if (folder / name).is_symlink():
        raise DamagedFileError(
            f'{folder / name} is a link, which no collection has: put what it leads to in its '
            'place, or move the whole collection and link that'
        )
    advice = missing_extension_of_file(name) or '; install the extension that keeps it there'
    raise DamagedFileError(
        f'{folder / name} is not part of a collection: move it out of {folder}{advice}'
    )

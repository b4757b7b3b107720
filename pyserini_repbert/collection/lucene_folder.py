"""Lucene's part of a collection: a folder for each generation, whose segments are hard links.

Lucene never changes a segment that is written. A generation links the segments of the one before,
and adds and deletes documents in new files. The old folder does not change.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.collection.generation_manifest import GenerationManifest, generation_name
from pyserini_repbert.collection.settings import CollectionSettings, SparseKind
from pyserini_repbert.collection.shards import sync_to_disk
from pyserini_repbert.collection.store import FOREVER, contents_of
from pyserini_repbert.errors import within_limits
from pyserini_repbert.lucene.lucene_form import LUCENE_FORM
from pyserini_repbert.processes import expect_to_go_on

MOST_DEAD = 1 / 20  # of the documents, before segments are merged
# To index 300,000 documents of 150 words takes a fifth less processor time with Java's second
# compiler, which a process that ends soon does without; 100,000 take as much with it as without.
_MANY_TEXTS = 150_000
_UNFINISHED = '.unfinished'
_LOCK = 'write.lock'


@dataclass(frozen=True)
class LuceneState:
    """The Lucene folder of a generation; `name` is None for a collection without Lucene."""

    name: str | None = None
    documents: int = 0
    dead: int = 0  # deleted documents that Lucene still counts


def update_lucene(
    parent: Path,
    connection: sqlite3.Connection,
    generation: int,
    settings: CollectionSettings,
    before: GenerationManifest | None,
    merge: bool = False,
) -> LuceneState:
    """Write Lucene's folder of the next generation.

    Parameters
    ----------
    parent : the folder `lucene/` of the collection
    connection : of the writer, which has staged the next generation
    generation : its number
    settings : its settings
    before : the generation that it follows; None: all documents are indexed again
    merge : merge segments, whatever the share of deleted documents

    A generation without changed texts keeps the folder of the one before.
    """
    if settings.sparse is not SparseKind.BM25:
        return LuceneState()
    earlier = None
    if before is not None and before.lucene is not None:
        state = LuceneState(before.lucene, before.lucene_documents, before.lucene_dead)
        is_changed = connection.execute('SELECT 1 FROM staged WHERE is_text LIMIT 1').fetchone()
        if not is_changed and not (merge and state.dead):
            return state
        earlier = parent / before.lucene
    from pyserini_repbert.lucene.updating import LuceneUpdate

    if earlier is None and _count_texts(connection) >= _MANY_TEXTS:
        expect_to_go_on()
    most_dead = 0.0 if merge else MOST_DEAD
    target = parent / generation_name(generation)
    with within_limits(parent):
        folder = _make_links(earlier, parent / _UNFINISHED)
        with LuceneUpdate(folder, settings.language) as index:
            if earlier is None:
                index.add(_contents(connection, settings))
            else:
                index.delete(_changed_docids(connection))
                # in this order, SQLite reads only the texts of the staged documents
                changed = 'staged CROSS JOIN texts USING (docno)'
                index.add(_contents(connection, settings, changed, 'AND is_text'))
            counts = index.finish(most_dead)
        (folder / _LOCK).unlink(missing_ok=True)
        sync_to_disk(folder)
        # of a command that was killed before it published
        LUCENE_FORM.remove(target)
        folder.rename(target)
        sync_to_disk(parent)
    return LuceneState(target.name, counts.documents, counts.dead)


def _count_texts(connection: sqlite3.Connection) -> int:
    rows = connection.execute(f'SELECT COUNT(*) FROM texts WHERE until = {FOREVER}')
    return int(rows.fetchone()[0])


def _changed_docids(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute('SELECT docid FROM staged JOIN documents USING (docno) WHERE is_text')
    for (docid,) in rows:
        yield docid


def _contents(
    connection: sqlite3.Connection,
    settings: CollectionSettings,
    tables: str = 'texts',
    condition: str = '',
) -> Iterator[tuple[str, str]]:
    """The docid and the contents of documents, with words in one form.

    Documents without text for Lucene are left out.

    Parameters
    ----------
    connection : of the writer
    settings : of the next generation
    tables : that have the texts
    condition : a further condition for these
    """
    rows = connection.execute(
        f'SELECT docid, title, text FROM {tables} CROSS JOIN documents USING (docno) '
        f'WHERE until = {FOREVER} {condition} ORDER BY docno'
    )
    for docid, title, text in rows:
        contents = contents_of(title, text, settings.language)
        if contents:
            yield docid, contents


def _make_links(source: Path | None, target: Path) -> Path:
    """Make a folder of hard links to the files of another one, or of copies if links are
    impossible.
    """
    LUCENE_FORM.remove(target)
    target.mkdir(parents=True)
    files = [] if source is None else sorted(source.iterdir())
    for file in files:
        try:
            os.link(file, target / file.name)
        except OSError:
            shutil.copyfile(file, target / file.name)
            sync_to_disk(target / file.name)
    return target

"""Whether a collection is intact: its files, SQLite's rows, its vectors, and Lucene's documents."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np

from pyserini_repbert.collection.adaptation import fits_models, judgments_of, learned_folder
from pyserini_repbert.collection.digests import ORIGINS, OWNERS, digest_sources
from pyserini_repbert.collection.generation import Generation, LiveShard, open_generation
from pyserini_repbert.collection.generation_manifest import last_published
from pyserini_repbert.collection.layout import check_layout
from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.sources import SyncReport
from pyserini_repbert.collection.store import (
    ADVICE,
    ALIVE,
    FOREVER,
    SCHEMA,
    STORE,
    VERSIONED,
    open_for_reading,
    sqlite_errors,
)
from pyserini_repbert.collection.stored_content import content_differences
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.lucene.updating import check_lucene_index
from pyserini_repbert.search.adapted_folder import open_query_map, read_adapted
from pyserini_repbert.sqlite_files import integrity_problems, schema_differences

# Differences that are named; then the check ends.
_MOST_NAMED = 20


def check_collection(folder: Path, on_difference: Callable[[str], object] = len) -> str:
    """Check that the parts of the newest generation agree with each other and with their digests.

    All files of the generation are read, and the rows of all documents: see `stored_content`.

    Parameters
    ----------
    folder : of the collection
    on_difference : called with a line for each of the first 20 things that do not fit

    Returns a line that says what the collection holds, and further ones for what extensions keep
    there, if there is any. Raises DamagedFileError, which names the first difference.
    """
    check_layout(folder)
    found = _Differences(on_difference)
    with contextlib.closing(open_generation(folder)) as generation:
        found.extend(_structure_differences(generation))
        if not found.lines:
            # Only a file that SQLite can read has rows to compare.
            found.extend(_differences(generation))
        found.extend(judgments_of(folder).problems())
        found.note(_check_adaptation, generation)
        lucene = found.note(_check_lucene, generation)
        of_parts = [
            found.note(partial(_check_part, part), generation) for part in loaded('in_collections')
        ]
    if found.lines:
        raise _damage(folder, found)
    manifest = generation.manifest
    shards = '1 shard' if len(manifest.shards) == 1 else f'{len(manifest.shards)} shards'
    line = (
        f'{folder}: intact, generation {manifest.number}: {manifest.documents} documents, '
        f'{manifest.passages} passages in {shards}, encoder '
        f"'{manifest.settings.encoder}', language '{manifest.settings.language}'; "
        f'{_describe_further(manifest.settings)}{lucene}'
    )
    return '\n'.join(text for text in (line, *of_parts) if text)


def _check_part(part: CollectionPart, generation: Generation) -> str:
    """What an extension says of its files, a line each; '' without any."""
    return '\n'.join(part.check(generation))


def _describe_further(settings: CollectionSettings) -> str:
    """Names the further models of a collection."""
    models = [f"{kind.what} '{model.encoder}', " for kind, model in settings.further_models.items()]
    return ''.join(models)


class _Differences:
    """The differences, one line each, up to the limit.

    `on_difference` is called with each line.
    """

    def __init__(self, on_difference: Callable[[str], object]) -> None:
        self._on_difference = on_difference
        self.lines: list[str] = []
        self.has_more = False

    def extend(self, lines: Iterable[str]) -> None:
        """Take lines up to the limit; further differences are not looked for."""
        for line in lines:
            if len(self.lines) == _MOST_NAMED:
                self.has_more = True
                return
            self.lines.append(line)
            self._on_difference(line)

    def note(self, check: Callable[[Generation], str], generation: Generation) -> str:
        """What a check returns; of one that finds a damaged file, its message is a line."""
        if self.has_more:
            return ''
        try:
            return check(generation)
        except DamagedFileError as error:
            self.extend([str(error)])
            return ''


def _structure_differences(generation: Generation) -> Iterator[str]:
    """What is wrong with the SQLite file itself, apart from the content of its rows."""
    path = generation.folder / STORE
    with (
        contextlib.closing(open_for_reading(generation.folder)) as connection,
        sqlite_errors(path),
    ):
        yield from integrity_problems(connection)
        yield from schema_differences(connection, SCHEMA)


def _differences(generation: Generation) -> Iterator[str]:
    """What differs between the manifest, SQLite's rows, and the files of shards."""
    yield from _count_differences(generation)
    yield from _table_differences(generation)
    yield from _generation_differences(generation)
    yield from _identity_differences(generation)
    yield from _owner_differences(generation)
    for live in generation.shards:
        damaged_files = list(live.shard.differences())
        yield from damaged_files
        if not damaged_files:
            yield from _row_differences(generation, live)
            yield from _value_differences(generation, live)
    yield from content_differences(generation)


def _count_differences(generation: Generation) -> Iterator[str]:
    count = _number(generation, f'SELECT COUNT(*) FROM fields WHERE {ALIVE}')
    if count != len(generation):
        yield f'{count} documents, its manifest says {len(generation)}'
    n_texts = _number(generation, f'SELECT COUNT(*) FROM texts WHERE {ALIVE}')
    if n_texts != count:
        yield f'{count} documents, but {n_texts} texts'


def _table_differences(generation: Generation) -> Iterator[str]:
    """What differs in the tables that have no row for each document."""
    shards = generation.select(f'SELECT name, rows FROM shards WHERE {ALIVE} ORDER BY name')
    named = sorted((entry.name, entry.rows) for entry in generation.manifest.shards)
    if shards != named:
        yield 'the table of shards does not have the shards of the manifest'
    for live in generation.shards:
        rows = generation.select(
            'SELECT row FROM dead_rows JOIN shards USING (shard) WHERE name IN '
            '(SELECT value FROM json_each(:rows)) AND dead_rows.since <= :generation ORDER BY row',
            [live.shard.name],
        )
        dead = [] if live.live is None else np.flatnonzero(~live.live).tolist()
        if [row for (row,) in rows] != dead:
            yield f'the dead rows of shard {live.shard.name} differ from the manifest'
    lost = _number(
        generation,
        'SELECT COUNT(*) FROM dead_rows WHERE shard NOT IN (SELECT shard FROM shards)',
    )
    if lost:
        yield f'{lost} dead rows are of a shard that is not in the table of shards'


def _generation_differences(generation: Generation) -> Iterator[str]:
    """Rows that begin or end with a generation that is neither published nor staged.

    A writer may publish meanwhile: each statement asks for the newest generation itself.
    """
    staged = '(SELECT 1 + MAX(number) FROM generations)'
    for table in (*VERSIONED, 'shards', 'dead_rows'):
        begun = _number(generation, f'SELECT COUNT(*) FROM {table} WHERE since > {staged}')
        if begun:
            yield f'{begun} rows of the table {table} begin with a generation that does not exist'
    for table in (*VERSIONED, 'shards'):
        ended = _number(
            generation,
            f'SELECT COUNT(*) FROM {table} WHERE until <> {FOREVER} AND until > {staged}',
        )
        if ended:
            yield f'{ended} rows of the table {table} end with a generation that does not exist'
    for table in VERSIONED:
        unnamed = _number(
            generation,
            f'SELECT COUNT(*) FROM {table} WHERE {staged} IN (since, until) '
            'AND docno NOT IN (SELECT docno FROM staged)',
        )
        if unnamed:
            yield f'{unnamed} staged rows of the table {table} are of no document that is staged'


def _identity_differences(generation: Generation) -> Iterator[str]:
    """A second identity; that the first is not the manifest's is said where that is opened."""
    if _number(generation, 'SELECT COUNT(*) FROM identity') > 1:
        yield 'the collection has several identities'


def _owner_differences(generation: Generation) -> Iterator[str]:
    """What differs in the docids and the sources of documents, and in the tables about sources."""
    with (
        contextlib.closing(open_for_reading(generation.folder)) as connection,
        sqlite_errors(generation.folder / STORE),
    ):
        # All statements see the same moment.
        connection.execute('BEGIN')
        newest = last_published(connection)
        manifest = generation.manifest
        for digest, expected, what in (
            (OWNERS, manifest.owners_digest, 'docids or the sources of documents'),
            (ORIGINS, manifest.origins_digest, 'places of documents in their sources'),
        ):
            if digest.of_generation(connection, generation.number) != expected:
                yield f'the {what} differ from the manifest'
        if newest is not None and newest.number == generation.number:
            # Otherwise, the sources belong to a generation that was published meanwhile.
            yield from _source_differences(connection, generation)


def _source_differences(connection: sqlite3.Connection, generation: Generation) -> Iterator[str]:
    """What differs in the tables about sources. Only their current version is stored."""
    alive = {'generation': generation.number}
    (without_source,) = connection.execute(
        f'SELECT COUNT(*) FROM fields WHERE {ALIVE} AND source NOT IN (SELECT source FROM sources)',
        alive,
    ).fetchone()
    if without_source:
        yield f'{without_source} documents have a source that is not in the table of sources'
    if digest_sources(connection) != generation.manifest.sources_sha256:
        yield 'the sources, their prefixes, paths, formats and links differ from the manifest'
    yield from _sync_differences(connection)
    (without_prefix,) = connection.execute(
        'SELECT COUNT(*) FROM fields JOIN source_prefixes USING (source) '
        f'JOIN documents USING (docno) WHERE {ALIVE} '
        'AND SUBSTR(docid, 1, LENGTH(prefix)) <> prefix',
        alive,
    ).fetchone()
    if without_prefix:
        yield f'{without_prefix} documents have docids without the prefix of their source'


def _sync_differences(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the notes of syncs.

    Digests do not cover them, because each sync changes them.
    """
    rows = connection.execute(
        'SELECT synced, unread, name FROM source_syncs JOIN sources USING (source)'
    )
    for synced, unread, name in rows:
        try:
            datetime.fromisoformat(synced)
            SyncReport.parsed(unread)
        except (TypeError, ValueError):
            yield f"what was written of the last sync of source '{name}' is damaged"


def _number(generation: Generation, statement: str) -> int:
    """The one number that a query gives."""
    return int(generation.select(statement)[0][0] or 0)


def _row_differences(generation: Generation, live: LiveShard) -> Iterator[str]:
    """How a shard's rows differ from the passages that SQLite has in it."""
    shard = live.shard
    rows = generation.select(
        'SELECT row, docno, number, input FROM passages '
        'WHERE shard = (SELECT shard FROM shards WHERE name IN (SELECT value FROM '
        f'json_each(:rows))) AND {ALIVE} ORDER BY row',
        [shard.name],
    )
    expected = np.arange(len(shard))
    if live.live is not None:
        expected = np.flatnonzero(live.live)
    if [row[0] for row in rows] != expected.tolist():
        yield f'the passages of shard {shard.name} are not its live rows'
        return
    for row, docno, number, digest in rows:
        is_same = shard.documents[row] == docno and shard.numbers[row] == number
        if not is_same or shard.inputs[row].tobytes() != digest:
            yield f'row {row} of shard {shard.name} is another passage'


def _value_differences(generation: Generation, live: LiveShard) -> Iterator[str]:
    """What is wrong with a shard's values, and with those that further models should have
    stored.
    """
    try:
        live.shard.check_values()
        for kind, model in generation.settings.further_models.items():
            if not live.shard.rows_of(kind).is_of(model):
                yield f'shard {live.shard.name} is of another {kind.what}'
    except DamagedFileError as error:
        yield str(error)


def _check_adaptation(generation: Generation) -> str:
    """Check what was learned from judgments and is in use."""
    learning = judgments_of(generation.folder).in_use()
    if learning is not None:
        folder = learned_folder(generation.folder, learning)
        adapted = read_adapted(folder)
        if adapted.query_map is not None and fits_models(learning, generation.settings):
            open_query_map(folder, generation.settings.dimension)
    return ''


def _check_lucene(generation: Generation) -> str:
    """Compare Lucene's documents with those that have text; returns what to say of them."""
    folder = generation.lucene_folder
    if folder is None:
        return 'no Lucene index'
    if not folder.is_dir():
        raise DamagedFileError(f'{folder} is missing: {ADVICE}')
    settings = generation.settings
    rows = generation.select(
        f'SELECT docid FROM documents JOIN texts USING (docno) WHERE {ALIVE} '
        "AND contents_of(title, text, :language) <> ''",
        language=settings.language,
    )
    try:
        counts = check_lucene_index(folder, [docid for (docid,) in rows])
    except InputError as error:
        raise DamagedFileError(f'{error}: {ADVICE}') from error
    if counts.documents != len(rows):
        raise DamagedFileError(
            f'{folder} has {counts.documents} documents, {len(rows)} were expected: {ADVICE}'
        )
    text = f'Lucene: {counts.documents} documents'
    if counts.dead:
        text += f', and {counts.dead} deleted ones that count until segments are merged'
    return text


def _damage(folder: Path, found: _Differences) -> DamagedFileError:
    first = found.lines[0]
    count = len(found.lines)
    if count == 1:
        return DamagedFileError(f'collection {folder} is damaged, {first}: {ADVICE}')
    more = ' or more' if found.has_more else ''
    return DamagedFileError(
        f'collection {folder} is damaged in {count}{more} places, the first: {first}: {ADVICE}'
    )

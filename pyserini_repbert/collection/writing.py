"""The one writer of a collection: it stages the next generation, and publishes it.

Files are on the disk before the transaction that publishes them. Old files are removed after it. A
killed writer leaves the published generation as it was. The next writer undoes what was staged, and
finds the encoded vectors in the shards left behind.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pyserini_repbert.collection.adaptation import has_judgments, judgments_of
from pyserini_repbert.collection.cleaning import clean, remove_unpublished, shrink
from pyserini_repbert.collection.compacting import rewrite_shards, shard_states
from pyserini_repbert.collection.digests import ORIGINS, OWNERS, RowsDigest
from pyserini_repbert.collection.encoding import PassageEncoder
from pyserini_repbert.collection.generation_manifest import (
    GENERATIONS,
    LUCENE,
    GenerationManifest,
    ShardOfGeneration,
    last_published,
    read_manifest,
    write_manifest,
)
from pyserini_repbert.collection.identity import (
    KnownCollection,
    ensure_identity,
    no_collection,
    read_identity,
)
from pyserini_repbert.collection.layout import check_layout, collection_form
from pyserini_repbert.collection.locks import writer_lock
from pyserini_repbert.collection.lucene_folder import LuceneState, update_lucene
from pyserini_repbert.collection.renaming import Rename, find_moves, find_returns
from pyserini_repbert.collection.rows import discard_staged
from pyserini_repbert.collection.settings import (
    Defaults,
    EncoderSource,
    WantedSettings,
    choose_settings,
    cuts_alike,
    indexes_alike,
)
from pyserini_repbert.collection.shards import SHARDS, sync_to_disk
from pyserini_repbert.collection.source_files import store_file_records
from pyserini_repbert.collection.sources import DocumentSource, Sources
from pyserini_repbert.collection.staging import Staging
from pyserini_repbert.collection.store import (
    FOREVER,
    STORE,
    open_for_reading,
    open_for_writing,
    sqlite_errors,
)
from pyserini_repbert.data.file_records import FileRecords
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.sqlite_files import transaction

log = logging.getLogger(__name__)


class Writer:
    """A context in which a collection is written; leaving it lets the next writer in.

    Parameters
    ----------
    folder : the collection's; created if it does not exist
    source : opens the encoder, if anything has to be encoded
    wanted : the settings that the user names
    rebuild : redo what depends on settings that the user changes
    expected : the collection that the folder must hold, so none is created; None: any
    spare : folders of shards beside the collection's, in which vectors may be
    defaults : what a new collection has where the user names nothing

    Attributes
    ----------
    folder : the collection's
    connection : to its SQLite file
    published : the newest generation; None before the first
    sources : where the collection's documents come from
    source : which is stored with the next generation; None: none
    removed : the source that the next generation no longer has; None: none
    file_records : of the source's files, which are stored with it; None: none
    renames : documents that only get another docid with the next generation; judgments follow

    Raises BusyError if another process writes the collection, MismatchError for settings that
    differ from the collection's, and LostCollectionError if the collection is not the expected one.
    """

    def __init__(
        self,
        folder: Path,
        source: EncoderSource,
        wanted: WantedSettings,
        rebuild: bool = False,
        expected: KnownCollection | None = None,
        spare: Sequence[Path] = (),
        defaults: Defaults | None = None,
    ) -> None:
        self._expected = expected
        self._defaults = defaults or Defaults()
        self._spare = spare
        self.folder = folder
        self._source = source
        self._wanted = wanted
        self._rebuild = rebuild
        self._resources = contextlib.ExitStack()
        self._leaves_nothing = False
        self.published: GenerationManifest | None = None
        self.source: DocumentSource | None = None
        self.removed: DocumentSource | None = None
        self.file_records: FileRecords | None = None
        self.renames: Sequence[Rename] = ()

    def __enter__(self) -> Self:
        was_there = self.folder.exists()
        with contextlib.ExitStack() as resources:
            if self._expected is None:
                _make_folders(self.folder)
            elif not is_collection(self.folder):
                raise no_collection()
            else:
                check_layout(self.folder)
            resources.enter_context(writer_lock(self.folder))
            self._leaves_nothing = not was_there and not (self.folder / STORE).exists()
            resources.callback(self._remove_refused)
            self._check_expected()
            self.connection = open_for_writing(self.folder, self._expected is None)
            resources.callback(self.connection.close)
            resources.enter_context(sqlite_errors(self.folder / STORE))
            self._begin()
            self._leaves_nothing = False
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._resources.__exit__(*error)  # type: ignore[arg-type]

    def _remove_refused(self) -> None:
        """Remove the folder that was made for a collection whose settings are refused."""
        if self._leaves_nothing:
            collection_form().remove(self.folder)

    def _begin(self) -> None:
        newest = last_published(self.connection)
        number = 0
        stored = None
        if newest is not None:
            number = newest.number
            self.published = read_manifest(self.folder, newest)
            stored = self.published.settings
        # After a kill between the generation and its judgments.
        self._rename_judged()
        self._identity = ensure_identity(self.connection)
        self.sources = Sources(self.connection)
        discard_staged(self.connection, number + 1)
        remove_unpublished(self.folder, number)
        self._source.complete(stored, self._defaults.encoder)
        self.settings = choose_settings(
            self._wanted,
            self._source,
            stored,
            self._rebuild,
            default_language=self._defaults.language,
        )
        self.encoder = PassageEncoder(self._source, self.settings)
        self.staging = Staging(
            folder=self.folder,
            connection=self.connection,
            generation=number + 1,
            encoder=self.encoder,
            dimension=self.settings.dimension,
            dtype=self.settings.dtype,
            others=self._spare,
        )

    def _check_expected(self) -> None:
        """Raises LostCollectionError for another collection, to whose file nothing is written."""
        if self._expected is None:
            return
        with contextlib.closing(open_for_reading(self.folder)) as connection:
            newest = last_published(connection)
            identity = read_identity(connection)
        if newest is None:
            raise no_collection()
        self._expected.check(KnownCollection(identity, newest.number, newest.manifest_sha256))

    @property
    def must_cut_again(self) -> bool:
        """Whether the settings ask for passages or vectors that are not the stored ones."""
        return self.published is not None and not cuts_alike(self.published.settings, self.settings)

    @property
    def has_published(self) -> bool:
        """Whether this writer has published a generation."""
        return self.published is not None and self.published.number == self.staging.generation

    @property
    def has_changes(self) -> bool:
        """Whether anything is staged that a generation would have."""
        if self.published is None or self.published.settings != self.settings:
            return True
        row = self.connection.execute('SELECT 1 FROM staged LIMIT 1').fetchone()
        return row is not None

    def finish(self, merge: bool = False, compact: bool = False) -> GenerationManifest:
        """Publish what is staged as the next generation; returns the newest generation.

        If nothing has changed, no generation is published.

        Parameters
        ----------
        merge : merge Lucene's segments, so that no deleted document counts
        compact : also rewrite shards with dead rows, and put small shards together
        """
        self.staging.flush()
        if self.published is not None and not self._must_publish(merge, compact):
            with transaction(self.connection):
                self._store_source()
            clean(self.folder, self.connection, self.published.number)
            return self.published
        rewrite_shards(self.staging, compact)
        manifest = self._new_manifest(self._update_lucene(merge or compact))
        if self.published is None or self.has_changes or _differ(manifest, self.published):
            self._publish(manifest)
            self.published = manifest
            self._rename_judged()
        clean(self.folder, self.connection, self.published.number)
        if compact:
            shrink(self.connection)
        return self.published

    def _must_publish(self, merge: bool, compact: bool) -> bool:
        """Whether there may be anything for another generation."""
        if self.published is None or self.has_changes or compact:
            return True
        if merge and self.published.lucene_dead:
            return True
        return self.published.sources_sha256 != self.sources.digest_after(self._change_sources)

    def _update_lucene(self, merge: bool) -> LuceneState:
        before = self.published
        if before is not None and not indexes_alike(before.settings, self.settings):
            before = None
        return update_lucene(
            self.folder / LUCENE,
            connection=self.connection,
            generation=self.staging.generation,
            settings=self.settings,
            before=before,
            merge=merge,
        )

    def _new_manifest(self, lucene: LuceneState) -> GenerationManifest:
        shards = [
            ShardOfGeneration.of(state.name, state.rows, state.dead)
            for state in shard_states(self.staging)
        ]
        return GenerationManifest(
            number=self.staging.generation,
            settings=self.settings,
            documents=self._count_documents(),
            passages=sum(shard.rows - shard.n_dead for shard in shards),
            shards=tuple(shards),
            lucene=lucene.name,
            lucene_documents=lucene.documents,
            lucene_dead=lucene.dead,
            identity=self._identity,
            sources_sha256=self.sources.digest_after(self._change_sources),
            owners_digest=self._rows_digest(OWNERS, self._digest_before('owners_digest')),
            origins_digest=self._rows_digest(ORIGINS, self._digest_before('origins_digest')),
        )

    def _count_documents(self) -> int:
        """How many documents the next generation has, with the staged changes."""
        if self.published is None:
            rows = self.connection.execute(f'SELECT COUNT(*) FROM fields WHERE until = {FOREVER}')
            return int(rows.fetchone()[0])
        generation = self.staging.generation
        (begun,) = self.connection.execute(
            'SELECT COUNT(*) FROM staged CROSS JOIN fields USING (docno) '
            f'WHERE since = ? AND until = {FOREVER}',
            [generation],
        ).fetchone()
        (ended,) = self.connection.execute(
            f'SELECT COUNT(*) FROM fields WHERE until = ? AND until < {FOREVER} AND since < ?',
            [generation, generation],
        ).fetchone()
        return self.published.documents + int(begun) - int(ended)

    def _digest_before(self, name: str) -> str | None:
        """A digest of the generation before; None if it has none."""
        return None if self.published is None else getattr(self.published, name)

    def _rows_digest(self, digest: RowsDigest, before: str | None) -> str:
        generation = self.staging.generation
        if before is None:
            return digest.of_generation(self.connection, generation)
        return digest.of_staged(self.connection, generation, before)

    def _publish(self, manifest: GenerationManifest) -> None:
        """Publish a generation, whose files are on the disk; after this transaction, readers see
        it.
        """
        moves = self._find_moves()
        published = write_manifest(self.folder, manifest)
        now = datetime.now(UTC).isoformat(timespec='seconds')
        with transaction(self.connection):
            self.connection.execute(
                'INSERT INTO generations VALUES (?, ?, ?)',
                [published.number, published.manifest_sha256, now],
            )
            self.connection.execute('DELETE FROM staged')
            for rename in (*self.renames, *moves):
                values = [rename.old, rename.new]
                self.connection.execute('INSERT OR REPLACE INTO renamed VALUES (?, ?)', values)
            self._store_source()

    def _find_moves(self) -> list[Rename]:
        """Which texts went from one document to another; judgments follow them."""
        if not has_judgments(self.folder):
            return []
        store = judgments_of(self.folder)
        generation = self.staging.generation
        moves = find_moves(
            self.connection,
            generation=generation,
            renames=self.renames,
            judged=store.judged_docids(),
        )
        moves += find_returns(
            self.connection,
            generation=generation,
            moves=[*self.renames, *moves],
            judged=store.judged_versions(),
        )
        return moves

    def _rename_judged(self) -> None:
        """Move judgments to the new docids of their texts in the published generation, and remember
        the texts of deleted documents.
        """
        renamed = dict(self.connection.execute('SELECT old, new FROM renamed').fetchall())
        are_judged = has_judgments(self.folder)
        if renamed and are_judged:
            self._let_judgments_follow(renamed)
        if renamed:
            with transaction(self.connection):
                self.connection.execute('DELETE FROM renamed')
        if are_judged:
            self._remember_versions()

    def _let_judgments_follow(self, renamed: dict[str, str]) -> None:
        """Let judgments follow the texts that have other docids, which `renamed` has by the old."""
        newest = last_published(self.connection)
        n_displaced = judgments_of(self.folder).rename(
            renamed,
            versions=self._live_versions([*renamed, *renamed.values()]),
            generation='' if newest is None else newest.manifest_sha256,
        )
        if n_displaced:
            log.warning(
                '%d judgments were of texts that are gone, whose docids other texts have now: '
                'they are gone, too',
                n_displaced,
            )

    def _remember_versions(self) -> None:
        """Remember which text was judged, for deleted documents."""
        store = judgments_of(self.folder)
        unknown = store.docids_without_version()
        if unknown:
            ended = self._ended_versions()
            versions = {docid: ended[docid] for docid in unknown if docid in ended}
            if versions:
                store.set_versions(versions)

    def _live_versions(self, docids: Sequence[str]) -> dict[str, str]:
        """The version of each document, by docid, as `Generation.versions` has it."""
        rows = self.connection.execute(
            'SELECT docid, text_digest FROM documents JOIN fields USING (docno) '
            f'WHERE until = {FOREVER} AND docid IN (SELECT value FROM json_each(?))',
            [json.dumps(docids)],
        )
        versions = dict.fromkeys(docids, '')
        return versions | {docid: digest.hex() for docid, digest in rows}

    def _ended_versions(self) -> dict[str, str]:
        """The last version of each document that is deleted, by docid, as far as rows have it."""
        rows = self.connection.execute(
            'SELECT docid, text_digest FROM fields JOIN documents USING (docno) '
            f'WHERE until < {FOREVER} AND NOT EXISTS (SELECT 1 FROM fields AS live '
            f'WHERE live.docno = fields.docno AND live.until = {FOREVER}) ORDER BY since'
        )
        return {docid: digest.hex() for docid, digest in rows}

    def _store_source(self) -> None:
        """Write what the next generation says of sources and files; within a transaction."""
        self._change_sources()
        if self.source is not None and self.file_records is not None:
            store_file_records(self.connection, self.source, self.file_records)

    def _change_sources(self) -> None:
        """Write what the next generation says of sources; within a transaction."""
        if self.source is not None:
            self.sources.store(self.source)
        if self.removed is not None:
            self.sources.remove(self.removed)


def _differ(manifest: GenerationManifest, before: GenerationManifest) -> bool:
    """Whether two generations differ in more than their numbers."""
    return replace(manifest, number=before.number) != before


def _make_folders(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f'{folder} is a file: give the folder of a collection')
    is_new = not (folder / STORE).exists()
    if is_new and folder.is_dir() and any(folder.glob('[!.]*')):
        raise InputError(
            f'folder {folder} is not empty, and holds no collection: give another folder'
        )
    if folder.is_dir():
        check_layout(folder)
    for name in (SHARDS, GENERATIONS, LUCENE):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sync_to_disk(folder)

"""Another encoder, other passages or another language, tried in addition to the live ones.

`encode_trial` encodes into separate shards. `use_trial` publishes one generation with them, and
keeps the previous shards. The collection's one writer does both. Searches continue meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyserini_repbert.collection.collection import Collection
from pyserini_repbert.collection.generation import Generation, open_generation
from pyserini_repbert.collection.generation_manifest import (
    LUCENE,
    GenerationManifest,
    Published,
    ShardOfGeneration,
    last_published,
    manifest_path,
    read_manifest,
)
from pyserini_repbert.collection.locks import GenerationLock, writer_lock
from pyserini_repbert.collection.lucene_folder import LuceneState, update_lucene
from pyserini_repbert.collection.model_options import model_options
from pyserini_repbert.collection.settings import (
    CollectionSettings,
    EncoderSource,
    WantedSettings,
    cuts_alike,
    indexes_alike,
)
from pyserini_repbert.collection.shards import SHARD_FORM, SHARDS, list_shards, open_shard
from pyserini_repbert.collection.staging import NewRows
from pyserini_repbert.collection.store import STORE, open_for_reading, sqlite_errors
from pyserini_repbert.collection.writing import Writer
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extensions.trials.side_folders import (
    Side,
    is_searched_alike,
    link_generation,
    read_side,
    settle_switch,
    write_side,
)
from pyserini_repbert.lucene.lucene_form import LUCENE_FORM

# Passages in a shard. The encoded part of an unfinished shard may be lost to a sync in between.
_SHARD_ROWS = 8192


class TrialGeneration(Generation):
    """The newest generation of a collection, with the vectors and words of its trial.

    It ranks documents. It gives hits no passages, which are the live generation's.
    """

    lucene_parent: Path

    @property
    def lucene_folder(self) -> Path | None:
        """Lucene's index: the trial's own, if it has another language or sparse ranking."""
        name = self.manifest.lucene
        return None if name is None else self.lucene_parent / name


def encode_trial(
    collection: Collection, on_progress: Callable[[int], object] = int
) -> GenerationManifest:
    """Encode all documents by the settings of a collection's `open`, beside those it is searched
    by.

    Searches continue, and answer as before. What a trial, or the live generation, has of these
    vectors is not encoded again, also after a kill. `use_trial` then searches so. The trial before
    is replaced.

    Parameters
    ----------
    collection : was opened with the settings to try
    on_progress : called with the number of documents that were encoded since the last call

    Returns what the trial has. Raises InputError for settings that are in use already, and
    BusyError while another process writes.
    """
    collection.check_exists()
    with collection.open_writer(rebuild=True, spare=_side_shards(collection.folder)) as writer:
        return _encode(writer, on_progress)


def use_trial(collection: Collection) -> GenerationManifest:
    """Search with the tried settings, from one new generation on; `go_back` returns.

    Only documents that are new since the trial are encoded. Returns the new generation. Raises
    InputError without a trial, MismatchError if its encoder has changed.
    """
    return _switch(collection, Side.TRIAL)


def go_back(collection: Collection) -> GenerationManifest:
    """Search as before `use_trial`, from one new generation on; that is the trial again.

    Only documents that are new since then are encoded. Raises InputError if there is nothing to
    go back to.
    """
    return _switch(collection, Side.BEFORE)


def _switch(collection: Collection, side: Side) -> GenerationManifest:
    collection.check_exists()
    collection.check_folder()
    manifest = _switch_to(collection.folder, side, collection.source)
    collection.read_written()
    return manifest


def _side_shards(folder: Path) -> list[Path]:
    """The folders of shards beside the collection's."""
    return [folder / side / SHARDS for side in Side]


def _encode(writer: Writer, on_progress: Callable[[int], object]) -> GenerationManifest:
    """Encode the documents of a collection by a writer's settings, beside the live generation.

    The writer was opened to rebuild the collection; it publishes nothing here.
    """
    live = writer.published
    if live is None:
        raise InputError(
            f'collection {writer.folder} is still empty: run `index sync` before you try another '
            'encoder'
        )
    settle_switch(writer.folder, live.settings)
    settings = writer.settings
    if is_searched_alike(settings, live.settings):
        raise InputError(
            f'collection {writer.folder} is searched by these settings already: name others to try'
        )
    parent = writer.folder / Side.TRIAL
    known = read_side(writer.folder, Side.TRIAL)
    if known is not None and known.number == live.number and known.settings == settings:
        return known
    (parent / SHARDS).mkdir(parents=True, exist_ok=True)
    shards = live.shards
    if not cuts_alike(live.settings, settings):
        shards = _write_shards(writer, parent / SHARDS, on_progress)
    lucene = LuceneState(live.lucene, live.lucene_documents, live.lucene_dead)
    if not indexes_alike(live.settings, settings):
        lucene = update_lucene(
            parent / LUCENE,
            connection=writer.connection,
            generation=live.number,
            settings=settings,
            before=None,
        )
    trial = replace(
        live,
        settings=settings,
        passages=sum(shard.rows - shard.n_dead for shard in shards),
        shards=shards,
        lucene=lucene.name,
        lucene_documents=lucene.documents,
        lucene_dead=lucene.dead,
    )
    write_side(writer.folder, Side.TRIAL, trial)
    _remove_others(parent, trial)
    return trial


def _write_shards(
    writer: Writer, parent: Path, on_progress: Callable[[int], object]
) -> tuple[ShardOfGeneration, ...]:
    """Write shards of all documents; their rows are in the order of documents and passages."""
    staging = writer.staging
    shards = []
    rows = NewRows()
    for docno, passages in staging.cut_stored():
        for number, passage in enumerate(passages):
            digest = staging.encoder.input_digest(passage.input)
            rows.add(docno, number, digest, passage.input)
        on_progress(1)
        if len(rows) >= _SHARD_ROWS:
            shards.append(staging.write_rows(rows, parent))
            rows = NewRows()
    if len(rows):
        shards.append(staging.write_rows(rows, parent))
    return tuple(ShardOfGeneration(shard.name, len(shard)) for shard in shards)


def _remove_others(parent: Path, trial: GenerationManifest) -> None:
    """Remove the shards and the Lucene indexes of earlier trials."""
    names = {entry.name for entry in trial.shards}
    for name in list_shards(parent / SHARDS):
        if name not in names:
            SHARD_FORM.remove(parent / SHARDS / name)
    for name in list_shards(parent / LUCENE):
        if name != trial.lucene:
            LUCENE_FORM.remove(parent / LUCENE / name)


def open_trial(folder: Path) -> TrialGeneration:
    """The documents of a collection as its trial ranks them; close it.

    Raises InputError without a trial, or with one of an earlier generation.
    """
    trial = required_side(folder, Side.TRIAL)
    connection = open_for_reading(folder)
    try:
        with sqlite_errors(folder / STORE):
            published = last_published(connection)
        if published is None or published.number != trial.number:
            raise InputError(
                f'collection {folder} has changed since it was tried: try again, which encodes '
                'what is new'
            )
        lock = GenerationLock(manifest_path(folder, published.number))
        try:
            live = read_manifest(folder, published).settings
            side = folder / Side.TRIAL
            shards = {}
            if not cuts_alike(live, trial.settings):
                for entry in trial.shards:
                    shards[entry.name] = open_shard(side / SHARDS, entry.name)
            sha256 = hashlib.sha256(trial.rendered()).hexdigest()
            tried = Published(trial.number, sha256)
            generation = TrialGeneration(folder, tried, trial, connection, lock, shards)
            is_own = not indexes_alike(live, trial.settings)
            generation.lucene_parent = (side if is_own else folder) / LUCENE
        except BaseException:
            lock.close()
            raise
    except BaseException:
        connection.close()
        raise
    return generation


def required_side(folder: Path, side: Side) -> GenerationManifest:
    """The manifest of a folder beside the generation. Raises InputError if there is none."""
    manifest = read_side(folder, side)
    if manifest is not None:
        return manifest
    if side is Side.TRIAL:
        raise InputError(
            f'collection {folder} has no trial: name what to try', parameters=('encoder',)
        )
    raise InputError(f'collection {folder} has nothing to go back to: it uses no trial')


def _switch_to(folder: Path, side: Side, source: EncoderSource) -> GenerationManifest:
    """Search a collection by what a folder beside it has, from one new generation on.

    Parameters
    ----------
    folder : of the collection
    side : its trial, or the shards from before
    source : an opened encoder of its is used, if it is the one that is needed; otherwise the one
        that is named there is opened on its device

    The previous shards are kept as the other side. Only documents that are new since then are
    encoded. Raises InputError if there is no such side, and MismatchError if another encoder has
    encoded it.
    """
    finished = _settle(folder)
    if finished is side:
        # It was published before it was interrupted.
        with contextlib.closing(open_generation(folder)) as generation:
            return generation.manifest
    settings = required_side(folder, side).settings
    if not source.is_given or source.name != settings.encoder:
        source = EncoderSource(settings.encoder, source.device)
    source.complete(settings)
    # Its vectors are as long as those that were encoded.
    _ = source.opened
    with Writer(
        folder, source, wanted_of(settings), rebuild=True, spare=_side_shards(folder)
    ) as writer:
        live = writer.published
        if live is None:
            raise InputError(f'collection {folder} is still empty: run `index sync`')
        if not is_searched_alike(writer.settings, settings):
            raise MismatchError(
                f"'{settings.encoder}' is not the encoder that has encoded {folder / side}: put "
                'that back, or try again'
            )
        other = Side.BEFORE if side is Side.TRIAL else Side.TRIAL
        link_generation(folder, other, live)
        if writer.must_cut_again:
            writer.staging.cut_again()
        manifest = writer.finish()
        settle_switch(folder, manifest.settings)
    return manifest


def _settle(folder: Path) -> Side | None:
    """Finish an interrupted switch, or take it back; returns the side that was finished."""
    with writer_lock(folder), contextlib.closing(open_generation(folder)) as generation:
        return settle_switch(folder, generation.settings)


def wanted_of(settings: CollectionSettings) -> WantedSettings:
    """What a user would ask for to have these settings."""
    return WantedSettings(
        passage_tokens=settings.passage_tokens,
        overlap=settings.overlap,
        language=settings.language,
        dtype=settings.dtype,
        models={option: settings.name_of(option) for option in model_options()},
    )

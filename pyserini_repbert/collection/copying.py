"""Copying a collection, while it is written and read."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from pyserini_repbert.collection.adaptation import ADAPTATIONS, JUDGMENTS
from pyserini_repbert.collection.cleaning import clean
from pyserini_repbert.collection.generation import Generation, open_generation
from pyserini_repbert.collection.generation_manifest import (
    GENERATIONS,
    LUCENE,
    GenerationManifest,
    last_published,
    manifest_path,
)
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.collection.layout import check_layout
from pyserini_repbert.collection.rows import discard_staged
from pyserini_repbert.collection.shards import SHARDS
from pyserini_repbert.collection.store import (
    STORE,
    open_for_reading,
    open_for_writing,
    sqlite_errors,
)
from pyserini_repbert.errors import BusyError, InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.files import StrPath, atomic_folder, check_absent
from pyserini_repbert.record import record_path

_TRIES = 10


def copy_collection(
    folder: StrPath, target: StrPath, on_left_out: Callable[[str], object] = str
) -> GenerationManifest:
    """Copy the newest generation of a collection into a new folder, with its judgments, what it
    learned from them, and what extensions keep for searches.

    Parameters
    ----------
    folder, target : of the collection, and of its copy, which has the same digest
    on_left_out : called with a line for what an extension does not copy

    Raises InputError for a target that exists or is inside the collection, and DamagedFileError for
    a collection that holds a link or an unknown file.
    """
    source = Path(folder)
    check_absent(target)
    if source.resolve() in Path(target).resolve().parents:
        raise InputError(f'{target} is inside the collection {source}: give another folder')
    # What a link leads to is not copied.
    check_layout(source)
    with atomic_folder(target) as copy, contextlib.ExitStack() as resources:
        generation = _copy_store(source, copy)
        resources.callback(generation.close)
        for live in generation.shards:
            shutil.copytree(live.shard.folder, copy / SHARDS / live.shard.name)
        (copy / GENERATIONS).mkdir()
        path = manifest_path(source, generation.number)
        for file in (path, record_path(path)):
            if file.is_file():
                shutil.copyfile(file, copy / GENERATIONS / file.name)
        (copy / LUCENE).mkdir()
        if generation.lucene_folder is not None:
            name = generation.lucene_folder.name
            ignored = shutil.ignore_patterns('write.lock')
            shutil.copytree(generation.lucene_folder, copy / LUCENE / name, ignore=ignored)
        _drop_other_generations(copy, generation.number)
        _copy_learned(source, copy)
        for part in loaded('in_collections'):
            for line in part.copy(generation, copy):
                on_left_out(line)
    return generation.manifest


def _copy_store(source: Path, copy: Path) -> Generation:
    """Copy SQLite's file; returns the generation that is the newest in the copy, opened."""
    for _ in range(_TRIES):
        generation = open_generation(source)
        reading = open_for_reading(source)
        writing = sqlite3.connect(copy / STORE)
        with contextlib.closing(reading), contextlib.closing(writing):
            with sqlite_errors(copy / STORE):
                reading.backup(writing)
            published = last_published(writing)
        if published is not None and published.number == generation.number:
            return generation
        # another one was published between the two steps
        generation.close()
    raise BusyError(f'collection {source} changed during each attempt to copy it: copy it later')


def _drop_other_generations(copy: Path, number: int) -> None:
    with (
        contextlib.closing(open_for_writing(copy)) as connection,
        sqlite_errors(copy / STORE),
    ):
        discard_staged(connection, number + 1)
        clean(copy, connection, number)


def _copy_learned(source: Path, copy: Path) -> None:
    """Copy the judgments and what was learned from them."""
    if (source / JUDGMENTS).is_file():
        JudgmentStore(source / JUDGMENTS).copy_to(copy / JUDGMENTS)
    # After the judgments, which say what is in use.
    if (source / ADAPTATIONS).is_dir():
        shutil.copytree(source / ADAPTATIONS, copy / ADAPTATIONS)

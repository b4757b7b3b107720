"""Removing what no generation needs: after publishing, and never what a reader holds."""

from __future__ import annotations

import logging
import re
import sqlite3
from pathlib import Path

from pyserini_repbert.collection.generation_manifest import (
    GENERATIONS,
    LUCENE,
    Published,
    list_manifests,
    manifest_path,
    read_manifest,
)
from pyserini_repbert.collection.layout import LUCENE_FOLDER, SHARD_FOLDER
from pyserini_repbert.collection.locks import removal_lock
from pyserini_repbert.collection.shards import SHARD_FORM, SHARDS
from pyserini_repbert.collection.store import FOREVER, VERSIONED
from pyserini_repbert.extension import loaded
from pyserini_repbert.lucene.lucene_form import LUCENE_FORM
from pyserini_repbert.record import record_path
from pyserini_repbert.sqlite_files import transaction

logger = logging.getLogger(__name__)


def remove_unpublished(folder: Path, published: int) -> None:
    """Remove the manifests of generations that were not published."""
    for number in list_manifests(folder):
        if number > published:
            manifest_path(folder, number).unlink()


def clean(folder: Path, connection: sqlite3.Connection, current: int) -> None:
    """Remove generations before `current` that no reader holds, with their rows and files."""
    oldest = _remove_manifests(folder, current)
    with transaction(connection):
        # the second condition lets SQLite use the index of rows that have ended
        for table in VERSIONED:
            connection.execute(
                f'DELETE FROM {table} WHERE until <= ? AND until < {FOREVER}', [oldest]
            )
        connection.execute(
            'DELETE FROM dead_rows WHERE shard IN (SELECT shard FROM shards WHERE until <= ?)',
            [oldest],
        )
        connection.execute('DELETE FROM shards WHERE until <= ?', [oldest])
        connection.execute('DELETE FROM generations WHERE number < ?', [oldest])
    _remove_shards(folder, connection)
    _remove_lucene_folders(folder, connection)


def shrink(connection: sqlite3.Connection) -> None:
    """Shrink SQLite's file by the space of removed rows, if nobody uses the file."""
    try:
        connection.execute('VACUUM')
        connection.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchall()
    except sqlite3.OperationalError as error:
        # readers hold the file, or there is no room for a second one: it does not change
        logger.info('SQLite does not shrink its file: %s', error)


def _remove_manifests(folder: Path, current: int) -> int:
    """The oldest generation that stays."""
    oldest = current
    for number in reversed(list_manifests(folder)):
        if number >= current:
            continue
        path = manifest_path(folder, number)
        with removal_lock(path) as is_free:
            if is_free:
                path.unlink()
                record_path(path).unlink(missing_ok=True)
            else:
                oldest = number
    return oldest


def _remove_shards(folder: Path, connection: sqlite3.Connection) -> None:
    rows = connection.execute('SELECT name FROM shards')
    names = [name for (name,) in rows]
    for path in _folders_in(folder / SHARDS, SHARD_FOLDER):
        if path.name not in names:
            SHARD_FORM.remove(path)
    for part in loaded('in_collections'):
        part.after_cleaning(folder, names)


def _remove_lucene_folders(folder: Path, connection: sqlite3.Connection) -> None:
    needed: set[str | None] = set()
    here = set(list_manifests(folder))
    rows = connection.execute('SELECT number, manifest_sha256 FROM generations').fetchall()
    for number, sha256 in rows:
        if number in here:
            needed.add(read_manifest(folder, Published(number, sha256)).lucene)
    for path in _folders_in(folder / LUCENE, LUCENE_FOLDER):
        if path.name not in needed:
            LUCENE_FORM.remove(path)
    for path in (folder / GENERATIONS).glob('.*.json'):
        if re.fullmatch(r'\.[0-9]{6,}', path.stem):
            path.unlink()


def _folders_in(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The folders of these names in `folder`, unfinished ones among them.

    None if it is a link, because its target does not belong to the collection.
    """
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if names.fullmatch(path.name)]

"""The output folder of an encoding: begun, resumed, cleared, and locked against other processes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import check_link, locked, remove_leftovers
from pyserini_repbert.folder_forms import refuse_link
from pyserini_repbert.index.bundle_form import (
    EARLIER_LOCK,
    ENCODING_LOCK as LOCK,
    PART_NAME,
    PART_RECORD,
    SHARD_FORM,
    UNFINISHED_SHARD,
    bundle_form,
    part_form,
)
from pyserini_repbert.index.manifest import (
    MANIFEST,
    PART,
    SETTINGS,
    SHARD,
    read_manifest,
    read_record,
    write_json,
)
from pyserini_repbert.index.records import BundleSettings, setting_difference

SHARD_PREFIX = 'shard-'


@contextmanager
def begun_output(
    folder: Path, settings: BundleSettings, resume: bool, overwrite: bool
) -> Iterator[None]:
    """A context for writing shards into a folder that is new, or was begun with the same settings.

    While it lasts, no other process writes into the folder. If it ends with an error before a shard
    is there, nothing is left behind. `overwrite` removes what an earlier run left, which must not
    be a whole index. Raises InputError if the folder is a file or holds something else, or is
    unfinished and neither `resume` nor `overwrite` is given.
    """
    if overwrite or not is_begun(folder):
        check_place(folder)
    new = [path for path in (folder, folder.parent) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / LOCK, f'output {folder}'):
            if overwrite:
                _clear(folder)
            _remove_leftovers(folder)
            try:
                _begin(folder, settings, resume)
                yield
            except BaseException:
                if not is_begun(folder):
                    (folder / SETTINGS).unlink(missing_ok=True)
                _remove_leftovers(folder)
                raise
    except BaseException:
        for path in new:
            with contextlib.suppress(OSError):  # not empty: it holds whole shards
                path.rmdir()
        raise


def is_begun(folder: Path) -> bool:
    """Whether there is work of an earlier run: a shard, whole or partly written, a part, or a
    manifest.
    """
    return any(any(folder.glob(pattern)) for pattern in (MANIFEST, f'{SHARD_PREFIX}*', f'{PART}*'))


def check_place(folder: Path) -> None:
    """Raises InputError for a file, or a folder with something that no encoding writes, at any
    depth.
    """
    check_link(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f'output {folder} is a file: give a folder')
    bundle_form().check(folder)


def _begin(folder: Path, settings: BundleSettings, resume: bool) -> None:
    """Record the settings, after comparing them with those that are recorded."""
    known = folder / SETTINGS
    if is_begun(folder):
        if not resume:
            raise InputError(
                f'{folder} is not empty: resume it, or overwrite it',
                parameters=('resume', 'overwrite'),
            )
        if known.is_file():
            before = read_record(known, type(settings))
        elif (folder / MANIFEST).is_file():
            before = read_manifest(folder, type(settings)).settings
        else:
            raise DamagedFileError(
                f'{known} is missing, which resuming needs: start again', parameters=('overwrite',)
            )
        check_settings(folder, before, settings)
    write_json(known, settings)


def check_settings(folder: Path, before: BundleSettings, settings: BundleSettings) -> None:
    """Raises MismatchError if an output folder was begun with other settings."""
    difference = setting_difference(before, settings)
    if difference:
        advice = 'resume with the same settings, or give another output'
        raise MismatchError(f'output {folder} was begun with {difference}: {advice}')


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed runs left."""
    for path in folder.glob(f'.{SHARD_PREFIX}*'):
        if re.fullmatch(UNFINISHED_SHARD, path.name):
            SHARD_FORM.remove(path)
    for path in folder.glob(f'.{PART}*.lock'):
        if re.fullmatch(EARLIER_LOCK, path.name):
            path.unlink()
    for name in (SETTINGS, MANIFEST):
        remove_leftovers(folder, name)


def clear_parts(folder: Path) -> None:
    """Remove all parts of an index. Raises BusyError if another process writes one of them."""
    for path in sorted(folder.glob(f'{PART}*')):
        if re.fullmatch(PART_NAME, path.name) and path.is_dir():
            refuse_link(path)
            with locked(path / LOCK, f'output {path}'):
                part_form().remove(path)
        elif re.fullmatch(PART_RECORD, path.name):
            path.unlink()


def _clear(folder: Path) -> None:
    """Remove everything that an encoding writes; if killed meanwhile, it leaves whole shards or
    none.
    """
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in sorted(folder.glob(f'{SHARD_PREFIX}*')):
        remove_shard(path)
    clear_parts(folder)
    (folder / SETTINGS).unlink(missing_ok=True)


def remove_shard(target: Path) -> None:
    """Remove the files of a shard, its record first: without the record, the rest does not count as
    a shard.
    """
    refuse_link(target)
    (target / SHARD).unlink(missing_ok=True)
    SHARD_FORM.remove(target)

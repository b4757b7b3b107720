"""The output folder of an encoding: begun, resumed, cleared, and locked against other processes."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.data.values import integer
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import remove_leftovers
from pyserini_repbert.index.ann import ANN, CLEARED, LOCK
from pyserini_repbert.index.manifest import MANIFEST, PLAN, SETTINGS, read_manifest, read_record, write_json
from pyserini_repbert.index.records import BundleSettings
from pyserini_repbert.locks import busy, locked, owner

_LOCK = re.compile(r'\.part-(\d{1,9})-of-(\d{1,9})\.lock')
_SHARD = 'shard-'
_CLEARED = '.shard-cleared-'  # prefix of a shard that is being removed


@dataclass(frozen=True)
class Part:
    """Which of a bundle's shards a process encodes: those with number % of == index."""

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """The part that '0/4', …, '3/4' name. Raises InputError for anything else."""
        index, _, of = text.partition('/')
        try:
            number = integer(of, 1)
            return cls(integer(index, 0, number - 1), number)
        except ValueError as error:
            message = f"part '{text[:60]}': expected i/n with i from 0 to n-1, '0/4' say"
            raise InputError(message, parameters=('shard',)) from error

    def has(self, number: int) -> bool:
        """Whether shard `number` belongs to this part."""
        return number % self.of == self.index

    def overlaps(self, other: Part) -> bool:
        """Whether some shard can belong to both parts (Chinese remainder theorem)."""
        return (self.index - other.index) % math.gcd(self.of, other.of) == 0


ALL = Part()


@contextmanager
def begun_output(
    folder: Path, settings: BundleSettings, part: Part, resume: bool = False, overwrite: bool = False
) -> Iterator[None]:
    """A context for writing shards into a folder that is new, or was begun with the same settings.

    While it lasts, no other process writes this part's shards. If it ends with an error before a shard is there,
    nothing is left behind.

    Raises
    ------
    InputError
        where the folder is a file or holds something else, or was begun and neither `resume` nor `overwrite` is given
    BusyError
        where another process works on the same shards
    MismatchError
        where the folder was begun with other settings
    DamagedFileError
        where the record of the settings is missing or damaged
    """
    with _made(folder, may_hold_more=not overwrite and _is_begun(folder)):
        if overwrite:
            with _claimed(folder, ALL):
                _clear(folder)
        with _claimed(folder, part) as others:
            _tidy(folder, part)
            try:
                _begin(folder, settings, part, resume, bool(others))
                yield
            except BaseException:
                if not _is_begun(folder) and not _others(folder, part):
                    (folder / SETTINGS).unlink(missing_ok=True)
                raise


@contextmanager
def planned_output(folder: Path, part: Part = ALL) -> Iterator[None]:
    """A context for work on a folder with planned shards; while it lasts, no other process writes this part's shards.

    Raises
    ------
    InputError
        where the folder is a file, or holds something that no encoding writes
    BusyError
        where another process works on the same shards
    """
    with _made(folder), _claimed(folder, part):
        _tidy(folder, part)
        yield


@contextmanager
def _made(folder: Path, may_hold_more: bool = False) -> Iterator[None]:
    """A context that makes the output folder; if it ends with an error, a new folder that is empty is removed again.

    Raises InputError for a file, or (unless it `may_hold_more`) a folder with something that no encoding writes.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f'output {folder} is a file: give a folder')
    if not may_hold_more and (foreign := _foreign(folder)):
        raise InputError(f'output {folder} holds {foreign}, which is no part of an index: give another folder')
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # not empty: whole shards, or those of another part
                folder.rmdir()
        raise


def cleared_for_plan(folder: Path, overwrite: bool) -> None:
    """Make a locked folder ready for a new plan. Raises InputError if it was begun and `overwrite` is false."""
    if overwrite:
        _clear(folder)
    elif _is_begun(folder):
        raise InputError(f'output {folder} is not empty: overwrite it, or give another', parameters=('overwrite',))
    (folder / SETTINGS).unlink(missing_ok=True)


def _begin(folder: Path, settings: BundleSettings, part: Part, resume: bool, others: bool) -> None:
    """Record the settings, after comparing them with those that are recorded. Errors are those of `begun_output`."""
    if (folder / PLAN).exists():
        raise InputError(
            f'output {folder} holds a plan: encode its shards and finish it, or overwrite it',
            parameters=('plan_shard', 'finish', 'overwrite'),
        )
    known = folder / SETTINGS
    begun = _is_begun(folder)
    if begun and not resume and (part.of == 1 or not known.is_file()):
        raise InputError(
            f'output {folder} is not empty: resume it, or overwrite it', parameters=('resume', 'overwrite')
        )
    before = None
    if (begun or others) and known.is_file():
        before = read_record(known, type(settings))
    elif begun and (folder / MANIFEST).is_file():
        before = read_manifest(folder, type(settings)).settings
    elif begun:
        raise DamagedFileError(
            f'{known} is missing, what is begun cannot be resumed: begin anew', parameters=('overwrite',)
        )
    if before is not None and before != settings:
        old, new = vars(before), vars(settings)
        name = next(key for key in new if old[key] != new[key])
        raise MismatchError(
            f"output {folder} was begun with {name} '{old[name]}', now it is '{new[name]}': "
            'resume with the same settings, or give another output'
        )
    write_json(known, settings)


def _is_begun(folder: Path) -> bool:
    """Whether there is work of an earlier run: a shard, a plan, or a manifest."""
    return any((folder / name).exists() for name in (MANIFEST, PLAN)) or has_shards(folder)


def has_shards(folder: Path) -> bool:
    """Whether there is a shard, whole or partly written (where folders cannot be renamed)."""
    return any(folder.glob(f'{_SHARD}*'))


def _foreign(folder: Path) -> str | None:
    """The name of something that no encoding writes, or None."""
    records = (SETTINGS, MANIFEST, PLAN)
    own = (*records, *(f'.{name}.' for name in records), _SHARD, f'.{_SHARD}', '.part-', f'.{ANN}.', CLEARED)
    if not folder.is_dir():
        return None
    names = sorted(path.name for path in folder.iterdir())
    return next((name for name in names if name != ANN and not name.startswith(own)), None)


def _others(folder: Path, part: Part) -> dict[Part, str]:
    """The other parts that living processes have locked, and which processes these are."""
    found = {}
    for path in folder.glob('.part-*.lock'):
        match = _LOCK.fullmatch(path.name)
        if match and (other := Part(int(match[1]), int(match[2]))) != part and (who := owner(path)):
            found[other] = who
    return found


@contextmanager
def _claimed(folder: Path, part: Part) -> Iterator[dict[Part, str]]:
    """Lock a part of the folder's shards; gives the other locked parts. Raises BusyError if one of them overlaps."""
    with locked(folder / f'.part-{part.index}-of-{part.of}.lock', f'output {folder}'):
        others = _others(folder, part)
        for other, who in others.items():
            if part.overlaps(other):
                raise busy(f'output {folder}', who)
        yield others


def _tidy(folder: Path, part: Part) -> None:
    """Remove what killed runs left of this part."""
    for path in folder.glob(f'{_CLEARED}*'):
        shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(f'.{_SHARD}*'):
        number = re.match(r'\.shard-(\d+)\.', path.name)
        if number and part.has(int(number[1])):
            shutil.rmtree(path)
    for name in (SETTINGS, MANIFEST, PLAN):
        remove_leftovers(folder, name)


def _clear(folder: Path) -> None:
    """Remove everything that an encoding writes, and the approximate index.

    If killed meanwhile, it leaves whole shards or none, and no manifest.
    """
    with locked(folder / LOCK, f'the approximate index of {folder}'):
        for name in (ANN, CLEARED):
            shutil.rmtree(folder / name, ignore_errors=True)
        remove_leftovers(folder, ANN)
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in sorted(folder.glob(f'{_SHARD}*')):
        path.rename(path.with_name(f'{_CLEARED}{path.name}'))
    for path in sorted(folder.glob(f'.{_SHARD}*')):
        shutil.rmtree(path)
    (folder / SETTINGS).unlink(missing_ok=True)
    (folder / PLAN).unlink(missing_ok=True)

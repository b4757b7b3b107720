"""An index made in parts: each part is a separate bundle inside the output folder until all
are put together.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyserini_repbert.data.values import integer
from pyserini_repbert.encode.output import SHARD_PREFIX, check_place, remove_shard
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extension import loaded
from pyserini_repbert.files import StrPath, locked, move
from pyserini_repbert.index.bundle_form import ENCODING_LOCK as LOCK, PART_RECORD, part_form
from pyserini_repbert.index.docids import DocidColumn, Docids
from pyserini_repbert.index.manifest import (
    MANIFEST,
    PART,
    SETTINGS,
    SHARD,
    read_manifest,
    verify_files,
    write_json,
)
from pyserini_repbert.index.records import (
    DOCIDS,
    Manifest,
    SettingsT,
    ShardRecord,
    setting_difference,
    shard_name,
)

_PART = re.compile(rf'{PART}(\d{{1,9}})-of-(\d{{1,9}})')


@dataclass(frozen=True, order=True)
class EncodingPart:
    """One of `of` parts of an index, counted from 0.

    The only part of one is an index that replaces another.
    """

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> EncodingPart:
        """The part that '0/4', …, '3/4' name. Raises InputError for anything else."""
        index, _, of = text.partition('/')
        try:
            number = integer(of, 1)
            return cls(integer(index, 0, number - 1), number)
        except ValueError as error:
            message = f"part '{text[:60]}': expected i/n with i from 0 to n-1, such as '0/4'"
            raise InputError(message, parameters=('shard',)) from error

    def folder(self, output: StrPath) -> Path:
        """The folder of the part in an output folder."""
        return Path(output) / f'{PART}{self.index}-of-{self.of}'


def part_folder(output: StrPath, part: EncodingPart, overwrite: bool = False) -> Path:
    """The folder to encode a part into. Raises InputError if `output` cannot hold it."""
    check_place(Path(output))
    if (Path(output) / MANIFEST).is_file() and not overwrite:
        raise InputError(
            f'{output} holds a whole index: overwrite it, or give another',
            parameters=('overwrite',),
        )
    return part.folder(output)


def finish_parts(
    output: StrPath, kind: type[SettingsT], overwrite: bool = False
) -> Manifest[SettingsT]:
    """Put the parts of an index together. An index that was there is replaced only now.

    If it is killed, call it again: it continues. `kind` is the class of the index's settings.
    Raises InputError if parts are missing or a docid comes twice, MismatchError if parts were made
    with different settings.
    """
    folder = Path(output)
    check_place(folder)
    begun = list(filter(Path.is_dir, folder.glob(f'{PART}*')))
    if not begun:
        raise InputError(
            f'{folder} has no parts to put together: encode them first', parameters=('shard',)
        )
    with contextlib.ExitStack() as locks:
        locks.enter_context(locked(folder / LOCK, f'output {folder}'))
        if _are_put_together(begun) and (folder / MANIFEST).is_file():
            _remove_parts(folder)
            return read_manifest(folder, kind)
        parts = _whole_parts(folder)
        for part in parts:
            locks.enter_context(locked(part / LOCK, f'output {part}'))
        manifests = [read_manifest(part, kind) for part in parts]
        _check_same_settings(parts, manifests)
        moves = _plan_moves(parts, manifests)
        if any(_is_here(planned.source) for planned in moves):
            _check_replaced(folder, overwrite)
            if len(parts) > 1:
                _verify(folder, moves)
        complete = _complete_manifest(manifests[0].settings, moves)
        _put_together(folder, [planned.source for planned in moves], complete)
        _remove_parts(folder)
    return complete


def _check_replaced(folder: Path, overwrite: bool) -> None:
    """Raises InputError if an index would be replaced unasked."""
    if (folder / MANIFEST).is_file() and not overwrite:
        raise InputError(f'{folder} holds a whole index: overwrite it', parameters=('overwrite',))


def _complete_manifest(settings: SettingsT, moves: Sequence[_PlannedMove]) -> Manifest[SettingsT]:
    """The manifest of the index that the moved shards make."""
    shards = tuple(planned.record for planned in moves)
    count = sum(shard.count for shard in shards)
    return Manifest(settings, count, shards, settings.kind)


def _are_put_together(parts: Sequence[Path]) -> bool:
    """Whether another call put the parts together, and removed at least one of them."""
    if all((part / MANIFEST).is_file() for part in parts):
        return False
    return all(map(_is_spent, parts))


def _check_same_settings(parts: Sequence[Path], manifests: Sequence[Manifest[SettingsT]]) -> None:
    """Raises MismatchError if parts were made with different settings."""
    for part, manifest in zip(parts, manifests, strict=True):
        difference = setting_difference(manifests[0].settings, manifest.settings)
        if difference:
            raise MismatchError(
                f'{parts[0]} was encoded with {difference} in {part}: encode one of them again'
            )


@dataclass(frozen=True)
class _PlannedMove:
    """A shard of a part that becomes one of the index.

    Attributes
    ----------
    source : its folder in the part
    record : its record in the index, with the name that it gets there
    """

    source: Path
    record: ShardRecord


def _plan_moves(
    parts: Sequence[Path], manifests: Sequence[Manifest[SettingsT]]
) -> list[_PlannedMove]:
    """The first shard of each part, then the second: the order in which rows are dealt out."""
    moves: list[_PlannedMove] = []
    for turn in itertools.zip_longest(*(manifest.shards for manifest in manifests)):
        for part, shard in zip(parts, turn, strict=True):
            if shard is not None:
                record = replace(shard, folder=shard_name(len(moves)))
                moves.append(_PlannedMove(part / shard.folder, record))
    return moves


def _whole_parts(folder: Path) -> list[Path]:
    """The folders of all parts, in order. Raises InputError if one is missing or not intact."""
    counts = set()
    for path in folder.glob('*'):
        match = _PART.fullmatch(path.name)
        if match:
            counts.add(int(match[2]))
    of, *others = sorted(counts)
    if others:
        raise InputError(
            f'{folder} has parts of {of} and of {others[0]}: remove the folders of one or the other'
        )
    parts = [EncodingPart(index, of) for index in range(of)]
    missing = [
        f'{part.index}/{of}' for part in parts if not (part.folder(folder) / MANIFEST).is_file()
    ]
    if missing:
        shown = ', '.join(missing[:6])
        if len(missing) > 6:
            shown += ', …'
        raise InputError(
            f'{folder} lacks {len(missing)} of {of} parts ({shown}): encode them',
            parameters=('shard',),
        )
    return [part.folder(folder) for part in parts]


def _verify(folder: Path, moves: Sequence[_PlannedMove]) -> None:
    """Compare all files with their checksums, and docids with each other."""
    columns = []
    for planned in moves:
        shard = planned.source
        if not _is_here(shard):
            shard = folder / planned.record.folder
        verify_files(shard, planned.record, remembered=False)
        columns.append(DocidColumn(shard / DOCIDS, planned.record.count))
    repeated = Docids(columns).repeated()
    if repeated is not None:
        docid, one, other = repeated
        raise InputError(
            f"docid '{docid}' is used in {moves[one].source} and again in {moves[other].source}: "
            'fix the corpus, and encode these parts again'
        )


def _put_together(folder: Path, sources: Sequence[Path], manifest: Manifest[SettingsT]) -> None:
    """Move the parts' shards to their places, those that an earlier call has not moved."""
    with contextlib.ExitStack() as held:
        for part in loaded('in_bundles'):
            held.enter_context(part.replacing(folder))
        if any(map(_is_here, sources)):
            (folder / MANIFEST).unlink(missing_ok=True)
        for source, record in zip(sources, manifest.shards, strict=True):
            target = folder / record.folder
            if _is_here(source):
                remove_shard(target)
                move(source, target)
            if source.name != record.folder:
                write_json(target / SHARD, record)
        for path in folder.glob(f'{SHARD_PREFIX}*'):
            if path.name not in {record.folder for record in manifest.shards}:
                remove_shard(path)
        write_json(folder / SETTINGS, manifest.settings)
        write_json(folder / MANIFEST, manifest, is_signed=True)


def _is_spent(part: Path) -> bool:
    """Whether all shards of a part were moved; its manifest is then the last file in it."""
    return not any(part.glob(f'*/{SHARD}')) and (
        (part / MANIFEST).is_file() or not (part / SETTINGS).is_file()
    )


def _remove_parts(folder: Path) -> None:
    for file in [*folder.glob(f'{PART}*/{SETTINGS}'), *folder.glob(f'{PART}*/{MANIFEST}')]:
        file.unlink()
    for path in folder.glob(f'{PART}*'):
        if re.fullmatch(PART_RECORD, path.name):
            path.unlink()
        else:
            part_form().remove(path)


def _is_here(shard: Path) -> bool:
    """Whether a shard is intact in its part; if not, it was moved."""
    return (shard / SHARD).is_file()

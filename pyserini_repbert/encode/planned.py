"""Encoding planned shards, each by itself and on any machine, and finishing the bundle."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.data.corpus import Corpus
from pyserini_repbert.data.corpus_formats import LinesCorpus
from pyserini_repbert.data.corpus_parts import PartOfCorpus
from pyserini_repbert.encode.corpus import dense_encoding
from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.encode.epic_corpus import epic_encoding
from pyserini_repbert.encode.opening import document_encoder
from pyserini_repbert.encode.output import Part, planned_output
from pyserini_repbert.encode.plan import Plan
from pyserini_repbert.encode.sharding import Encoding, compare_shard, remove_shard
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.docids import DocidColumn, same_docids
from pyserini_repbert.index.manifest import (
    MANIFEST,
    PLAN,
    SETTINGS,
    SHARD,
    read_manifest,
    read_record,
    verify_files,
    write_json,
    write_manifest,
)
from pyserini_repbert.index.records import DOCIDS, EpicSettings, Manifest, ShardRecord, file_difference, shard_name

logger = logging.getLogger(__name__)

Progress = Callable[[int], object]


def parse_shards(text: str) -> range:
    """The shard numbers of '7' or '4-7' (both included). Raises InputError for anything else."""
    first, dash, last = text.partition('-')
    if not (first.isascii() and first.isdigit() and len(first) < 10) or (
        dash and not (last.isascii() and last.isdigit() and len(last) < 10 and int(first) <= int(last))
    ):
        raise InputError(f"shards '{text[:60]}': expected K or K-L, '7' or '4-7' say", parameters=('plan_shard',))
    return range(int(first), int(last if dash else first) + 1)


def planned_encoding(
    plan: Plan[Any], device: str = 'cpu', encoder: str | None = None, on_progress: Progress | None = None
) -> Encoding[Any]:
    """How a plan's passages are encoded on this machine: with its checkpoint, opened in its precision.

    Errors are also those of the encoder.

    Parameters
    ----------
    encoder : catalog name or folder of the checkpoint here; default: as in the plan
    on_progress : called with the number of passages done since the last call

    Raises
    ------
    MismatchError
        where the checkpoint has other weights or settings than the plan's
    """
    settings = plan.settings
    name, most = encoder or settings.encoder, settings.max_length
    shared: dict[str, Any] = {
        'store_text': settings.texts,
        'shard_size': settings.shard_size,
        'token_budget': plan.batch_tokens,
        'on_progress': on_progress,
    }
    made: Encoding[Any]
    if isinstance(settings, EpicSettings):
        epic = EpicEncoder(name, device, settings.precision, most)
        made = epic_encoding(epic, prune=settings.prune, weights=settings.weights, **shared)
    else:
        dense = document_encoder(name, device, precision=settings.precision, max_length=most)
        made = dense_encoding(dense, dtype=settings.dtype, **shared)
    now = replace(made.settings, encoder=settings.encoder)
    for key, value in vars(settings).items():
        if getattr(now, key) != value:
            raise MismatchError(
                f"encoder '{name}' has {key} '{getattr(now, key)}', the plan was made with '{value}': "
                'give the checkpoint that was planned',
                parameters=('encoder',),
            )
    return replace(made, settings=settings)


def encode_shards(
    output: StrPath,
    plan: Plan[Any],
    corpus: Corpus,
    numbers: Iterable[int],
    encoding: Encoding[Any],
    on_progress: Progress | None = None,
) -> None:
    """Encode planned shards; one that is there, whole and of the same passages, is left as it is.

    A shard appears when it is whole: where folders cannot be renamed, `shard.json` is written last.

    Parameters
    ----------
    corpus : the planned one, wherever it is on this machine
    numbers : of the shards
    encoding : from `planned_encoding`, or one with the same settings
    on_progress : called with the number of passages of each shard that is there already; `encoding` reports its own

    Raises
    ------
    InputError
        for a number that the plan does not have, or a line of the corpus that cannot be used
    MismatchError
        where the corpus was changed, or the encoding has other settings than the plan
    BusyError
        where another process encodes the same shard
    """
    folder = Path(output)
    whole = plan.check(corpus)
    wanted, total = list(numbers), len(plan.shards)
    if beyond := [number for number in wanted if not 0 <= number < total]:
        raise InputError(f'shard {beyond[0]}: the plan of {folder} has shards 0 to {total - 1}')
    if encoding.settings != plan.settings:
        raise MismatchError(f'the plan of {folder} was made for other settings: encode with those of the plan')
    for number in wanted:
        plan.check_shard(number, whole)
        with planned_output(folder, Part(number, total)):
            _encode(folder / shard_name(number), plan, number, whole, encoding, on_progress)


def _encode(
    target: Path,
    plan: Plan[Any],
    number: int,
    corpus: LinesCorpus,
    encoding: Encoding[Any],
    on_progress: Progress | None,
) -> None:
    planned = plan.shards[number]

    def passages() -> PartOfCorpus:
        return PartOfCorpus(corpus, planned.spans)

    if (target / SHARD).is_file():
        try:
            compare_shard(target, plan.settings, iter(passages()), on_progress, verify=True)
        except DamagedFileError as error:
            logger.warning('%s: encoded again', error)
        else:
            return
    remove_shard(target)
    try:
        encoding.write(target, iter(passages()))
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        # Another machine, which does not see our locks, has written the shard meanwhile.
        compare_shard(target, plan.settings, iter(passages()), None, verify=True)


def missing_shards(output: StrPath, plan: Plan[Any]) -> list[int]:
    """The numbers of the planned shards that are missing."""
    return [n for n in range(len(plan.shards)) if not (Path(output) / shard_name(n) / SHARD).is_file()]


def finish_plan(output: StrPath, plan: Plan[Any]) -> Manifest[Any]:
    """Check every shard of a plan, and write the manifest: the bundle is then as if encoded in a single run.

    Raises
    ------
    InputError
        where shards are missing (it names them), or a docid comes twice
    DamagedFileError
        where a file of a shard is not the one that was written
    MismatchError
        where a shard is not the plan's
    BusyError
        where another process still writes
    """
    folder, total = Path(output), len(plan.shards)
    with planned_output(folder):
        if missing := missing_shards(folder, plan):
            raise InputError(
                f'{folder} lacks {len(missing)} of {total} shards ({_ranges(missing)}): encode them first',
                parameters=('plan_shard',),
            )
        records = [_checked(folder, plan, number) for number in range(total)]
        if (folder / shard_name(total)).exists():
            raise MismatchError(f'{folder / shard_name(total)} is not in the plan: remove it')
        columns = [DocidColumn(folder / record.folder / DOCIDS, record.count) for record in records]
        if (twice := same_docids(columns)) is not None:
            docid, one, other = twice
            raise InputError(
                f"docid '{docid}' is used in shard {one} and again in shard {other}: mend the corpus and plan again, "
                'or plan without what cannot be used',
                parameters=('plan', 'on_error=skip'),
            )
        manifest = Manifest(plan.settings, plan.count, tuple(records), plan.kind)
        write_json(folder / SETTINGS, plan.settings)
        write_manifest(folder, manifest)
        (folder / PLAN).unlink()
    return manifest


def finished(output: StrPath, settings: type[Any]) -> Manifest[Any] | None:
    """The manifest of a finished bundle, whose plan is gone; None if the bundle is not finished.

    Parameters
    ----------
    settings : the class of its settings
    """
    folder = Path(output)
    if (folder / PLAN).is_file() or not (folder / MANIFEST).is_file():
        return None
    with planned_output(folder):  # removes what a run killed at the last moment left
        return read_manifest(folder, settings)


def _checked(folder: Path, plan: Plan[Any], number: int) -> ShardRecord:
    """A shard's record, after comparing the shard's files and the plan with it."""
    target = folder / shard_name(number)
    again = f'encode shard {number} again, which mends it'
    try:
        record = read_record(target / SHARD, ShardRecord)
        verify_files(target, record, remembered=False)
    except DamagedFileError as error:
        raise DamagedFileError(f'{error}; {again}', parameters=('plan_shard',)) from error
    wrong = file_difference(record, plan.settings)
    if wrong or (record.folder, record.count) != (target.name, plan.shards[number].count):
        raise MismatchError(
            f'{target} {wrong or f"has {record.count} passages"}, the plan has {plan.shards[number].count}: {again}',
            parameters=('plan_shard',),
        )
    return record


def _ranges(numbers: Sequence[int]) -> str:
    """'1, 4-6' for [1, 4, 5, 6]; of many ranges, the first six."""
    groups = np.split(np.asarray(numbers), np.flatnonzero(np.diff(numbers) > 1) + 1)
    shown = [f'{group[0]}-{group[-1]}' if len(group) > 1 else f'{group[0]}' for group in groups[:6]]
    return ', '.join(shown) + (', …' if len(groups) > 6 else '')

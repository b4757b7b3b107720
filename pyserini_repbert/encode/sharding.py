"""Building a bundle from a corpus, of either kind: streamed, sharded, resumable to the same bytes."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.manifest import (
    MANIFEST,
    SETTINGS,
    SHARD,
    BundleSettings,
    Manifest,
    ShardRecord,
    read_record,
    write_json,
)
from pyserini_repbert.index.shard_writer import CorpusDigest, ShardWriter, Vectors, shard_name
from pyserini_repbert.numerals import integer
from pyserini_repbert.passages import Passage

_Settings = TypeVar('_Settings', bound=BundleSettings)


@dataclass(frozen=True)
class Part:
    """Which of the bundle's shards this process encodes: those whose number leaves `index` when divided by `of`."""

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Part:
        """'0/4' to '3/4'. Raises InputError for anything else."""
        index, _, of = text.partition('/')
        try:
            number = integer(of, 1)
            return cls(integer(index, 0, number - 1), number)
        except ValueError as error:
            raise InputError(f"--shard '{text[:60]}': expected i/n with i from 0 to n-1, '0/4' say") from error

    def has(self, number: int) -> bool:
        """Whether shard `number` is this process's."""
        return number % self.of == self.index


def build_bundle(
    corpus: Iterable[Passage],
    output: StrPath,
    settings: _Settings,
    open_writer: Callable[[Path], ShardWriter[Vectors]],
    encode: Callable[[Sequence[Passage]], Vectors],
    *,
    shard_size: int,
    window: int,
    part: Part | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[int], object] | None = None,
) -> Manifest[_Settings] | None:
    """Fill the index folder `output` with the shards of a corpus, those that are not there yet, and then its manifest.

    Parameters
    ----------
    settings : of the bundle; a resumed run needs the same
    open_writer : a shard's folder to the context that writes it
    encode : passages to their vectors, in the writer's form
    shard_size : passages in a shard
    window : passages encoded together
    on_progress : called with the number of passages of each shard that is there already; `encode` reports its own

    Returns
    -------
    the manifest, or None where other parts have shards to encode yet

    Raises
    ------
    InputError
        where `output` holds something and neither `resume` nor `overwrite` is given, or the corpus is empty
    MismatchError
        where `resume` meets another model, other settings or another corpus
    """
    folder = Path(output)
    chosen = part or Part()
    _prepare(folder, settings, resume, overwrite, chosen)
    total = 0
    for number, passages in enumerate(_runs_of(shard_size, corpus)):
        total = number + 1
        target = folder / shard_name(number)
        if (target / SHARD).is_file():
            _compare(target, passages, on_progress)
        elif chosen.has(number):
            with open_writer(target) as writer:
                for together in _windows(passages, window):
                    writer.append(together, encode(together))
        else:
            for _ in passages:
                pass
    if not total:
        raise InputError('the corpus has no passages: nothing was encoded')
    return _finish(folder, settings, total)


def _prepare(folder: Path, settings: BundleSettings, resume: bool, overwrite: bool, part: Part) -> None:
    """An output folder that is new, or that an earlier run or another part with the same settings began."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f'output {folder} is a file: give a folder')
    known = folder / SETTINGS
    if folder.is_dir() and any(folder.iterdir()):
        if overwrite:
            _clear(folder)
        elif not resume and (part.of == 1 or not known.is_file()):
            raise InputError(f'output {folder} is not empty: pass --resume to go on with it, or --overwrite')
        elif not (known.is_file() or (folder / MANIFEST).is_file()):
            raise InputError(f'output {folder} holds no begun encoding to resume: give another folder')
    if known.is_file():
        before = read_record(known, type(settings))
        if before != settings:
            old, new = _values(before), _values(settings)
            name = next(key for key in new if old[key] != new[key])
            raise MismatchError(
                f"output {folder} was begun with {name} '{old[name]}', now it is '{new[name]}': "
                'resume with the same settings, or give another output'
            )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(known, settings)
    for leftover in folder.glob('.shard-*'):  # of a run that was killed
        if part.has(int(leftover.name.split('.')[1].removeprefix('shard-'))):
            shutil.rmtree(leftover)


def _values(settings: Any) -> dict[str, object]:
    return asdict(settings)


def _clear(folder: Path) -> None:
    """Remove what an encoding writes; a folder with anything else in it is left alone."""
    foreign = [
        path.name
        for path in folder.iterdir()
        if path.name not in (SETTINGS, MANIFEST) and not path.name.startswith(('shard-', '.shard-'))
    ]
    if foreign:
        raise InputError(f'output {folder} holds {foreign[0]}, which is no part of an index: give another folder')
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _runs_of(size: int, corpus: Iterable[Passage]) -> Iterator[Iterator[Passage]]:
    """The corpus cut into runs of `size`, each to be read to its end before the next."""
    stream = iter(corpus)
    for first in stream:
        yield itertools.chain([first], itertools.islice(stream, size - 1))


def _windows(passages: Iterator[Passage], size: int) -> Iterator[list[Passage]]:
    while window := list(itertools.islice(passages, size)):
        yield window


def _compare(target: Path, passages: Iterator[Passage], on_progress: Callable[[int], object] | None) -> None:
    """Check that a shard that is there was made from these passages."""
    record = read_record(target / SHARD, ShardRecord)
    seen = CorpusDigest()
    for passage in passages:
        seen.add(passage)
    if seen.hexdigest() != record.corpus_sha256:
        raise MismatchError(
            f'{target} was encoded from other passages: resume with the same corpus, or give another output'
        )
    if on_progress is not None:
        on_progress(record.count)


def _finish(folder: Path, settings: _Settings, total: int) -> Manifest[_Settings] | None:
    paths = [folder / shard_name(number) / SHARD for number in range(total)]
    if (folder / shard_name(total)).exists():
        raise MismatchError(f'{folder / shard_name(total)} lies beyond the end of the corpus: it was made from another')
    if not all(path.is_file() for path in paths):
        return None
    shards = tuple(read_record(path, ShardRecord) for path in paths)
    manifest = Manifest(settings, sum(shard.count for shard in shards), shards, settings.kind)
    write_json(folder / MANIFEST, manifest)
    return manifest

"""A plan: which bytes of a corpus become which shard of a bundle, and how. Each shard can then be encoded by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.data.corpus import Corpus
from pyserini_repbert.data.corpus_formats import LinesCorpus
from pyserini_repbert.data.corpus_parts import Cut, bytes_digest, check_can_be_cut, cut
from pyserini_repbert.encode.output import cleared_for_plan, has_shards, planned_output
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.manifest import PLAN, read_signed, write_signed
from pyserini_repbert.index.records import BundleSettings, Count, EpicSettings, Name, Settings

_STRICT = ConfigDict(strict=True, extra='forbid')
_AnySettings = TypeVar('_AnySettings', bound=BundleSettings)
_KINDS: dict[object, Any] = {Settings.kind: Settings, EpicSettings.kind: EpicSettings}
_AGAIN = 'plan again, with overwrite'


@dataclass(frozen=True, config=_STRICT)
class PlannedFile:
    """A file of the corpus: its name, relative to the corpus's folder, and its size in bytes."""

    name: Name
    size: Annotated[int, Field(ge=0, le=2**60)]


@dataclass(frozen=True, config=_STRICT)
class PlannedCorpus:
    """The corpus of a plan.

    Attributes
    ----------
    source : a catalog name, or an absolute path
    format, fields : as a user would give them
    files : in the order in which they are read
    """

    source: Name
    format: Name
    fields: tuple[str, ...]
    files: tuple[PlannedFile, ...]


@dataclass(frozen=True, config=_STRICT)
class Plan(Generic[_AnySettings]):
    """The content of `plan.json`, without its checksum.

    Attributes
    ----------
    settings : of the bundle; they pin the precision and the checksum of the weights
    corpus : what is encoded
    count : passages in all
    batch_tokens : padded tokens in a batch; None: the device's default
    shards : the bytes of each shard, in order
    kind : 'dense' or 'epic'
    """

    settings: _AnySettings
    corpus: PlannedCorpus
    count: Count
    batch_tokens: int | None
    shards: tuple[Cut, ...]
    kind: str
    format_version: Annotated[int, Field(ge=1, le=1)] = 1

    def check(self, corpus: Corpus) -> LinesCorpus:
        """The corpus, if its files have the names and sizes of the plan's; `check_shard` compares their bytes.

        Raises
        ------
        InputError
            for a corpus that cannot be read by bytes
        MismatchError
            for a corpus with other files, format or fields
        """
        found = check_can_be_cut(corpus)
        now = _files(found)
        if now != self.corpus.files or (found.format, fields_of(found)) != (self.corpus.format, self.corpus.fields):
            names = [file.name for file in now]
            wrong = next((file for file in self.corpus.files if file not in now), self.corpus.files[0])
            has = f'{now[names.index(wrong.name)].size} bytes' if wrong.name in names else 'nothing'
            raise MismatchError(
                f"corpus {corpus.name} is not the one that was planned: of '{wrong.name}' the plan has {wrong.size} "
                f'bytes, it has {has}: give the corpus that was planned, or {_AGAIN}',
                parameters=('corpus', 'plan', 'overwrite'),
            )
        return found

    def check_shard(self, number: int, corpus: LinesCorpus) -> None:
        """Raises MismatchError if the bytes of shard `number` are not those that were planned."""
        planned = self.shards[number]
        if bytes_digest(corpus.paths, planned.spans) != planned.sha256:
            span = planned.spans[0]
            raise MismatchError(
                f'{corpus.paths[span.file]} was changed from line {span.line} on since shard {number} was planned: '
                f'restore the corpus, or {_AGAIN}',
                parameters=('plan', 'overwrite'),
            )


def plan_encoding(
    output: StrPath,
    corpus: Corpus,
    source: str,
    settings: BundleSettings,
    batch_tokens: int | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int], object] | None = None,
) -> Plan[Any]:
    """Read a corpus once and write the plan of its bundle into the folder `output`; nothing is encoded.

    If the folder has the same plan, it stays, and so do the shards that were encoded by it.

    Parameters
    ----------
    source : what the corpus is called on every machine: a catalog name, or a path
    settings : of the bundle
    batch_tokens : padded tokens in a batch; None: the device's default
    overwrite : remove an index, or another plan, that is there
    on_progress : called with the number of bytes of the corpus done since the last call

    Raises
    ------
    InputError
        where `output` holds an index and `overwrite` is false, or something else; where the corpus is empty,
        compressed, or not one of lines
    MismatchError
        where `output` holds another plan
    BusyError
        where another process writes into `output`
    DamagedFileError
        where `output` holds shards of a plan that is damaged
    """
    whole = check_can_be_cut(corpus)
    folder = Path(output)
    with planned_output(folder):
        shards = tuple(cut(whole, settings.shard_size, on_progress))
        if not shards:
            raise InputError('the corpus has no passages: nothing was planned')
        made = Plan(
            settings,
            PlannedCorpus(source, whole.format, fields_of(whole), _files(whole)),
            sum(shard.count for shard in shards),
            batch_tokens,
            shards,
            settings.kind,
        )
        before = None if overwrite else _begun(folder)
        if before is not None:
            _compare(folder, before, made)
        else:
            cleared_for_plan(folder, overwrite)
            write_signed(folder / PLAN, made)
    return made


def _begun(folder: Path) -> Plan[Any] | None:
    """The plan in the folder, or None. A damaged plan is removed if it has no shards, else DamagedFileError."""
    if not (folder / PLAN).exists():
        return None
    try:
        return read_plan(folder)
    except DamagedFileError:
        if has_shards(folder):
            raise
        (folder / PLAN).unlink()
        return None


def read_plan(folder: StrPath) -> Plan[Any]:
    """The plan of an output folder.

    Raises
    ------
    InputError
        where there is none
    DamagedFileError
        where it is not as it was written
    """
    path = Path(folder) / PLAN
    if not path.is_file():
        raise InputError(f'{folder} holds no plan: make one first', parameters=('plan',))

    def kind_of(values: dict[str, Any]) -> Any:
        return Plan[_KINDS.get(values.get('kind'), Settings)]  # type: ignore[misc]

    found: Plan[Any] = read_signed(path, kind_of, _AGAIN)
    return found


def fields_of(corpus: LinesCorpus) -> tuple[str, ...]:
    """The fields of JSON lines that were asked for; () for other formats."""
    return tuple(getattr(corpus, 'fields', ()))


def _files(corpus: LinesCorpus) -> tuple[PlannedFile, ...]:
    root = Path(corpus.name)
    folder = root if root.is_dir() else None
    names = [path.relative_to(folder).as_posix() if folder else path.name for path in corpus.paths]
    return tuple(PlannedFile(name, path.stat().st_size) for name, path in zip(names, corpus.paths, strict=True))


def _compare(folder: Path, before: Plan[Any], now: Plan[Any]) -> None:
    """Raises MismatchError, naming a difference, unless the plans are equal."""
    if before == now:
        return
    found = [entry for entry in _leaves(asdict(before), asdict(now)) if entry[0] not in ('shards', 'files', 'count')]
    what = "with {} '{}', not '{}'".format(*found[0]) if found else 'of a corpus with other content'
    raise MismatchError(
        f'output {folder} holds another plan, {what}: finish that, overwrite it, or give another output',
        parameters=('finish', 'overwrite'),
    )


def _leaves(old: dict[str, Any], new: dict[str, Any]) -> Sequence[tuple[str, object, object]]:
    """The differences between two plans: (name, old value, new value)."""
    found: list[tuple[str, object, object]] = []
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            found += _leaves(before, value)
        elif before != value:
            found.append((key, before, value))
    return found

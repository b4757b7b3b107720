"""Building a bundle, dense or of term weights, from a corpus: streamed, sharded, resumable to the
same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.output import begun_output, check_place, check_settings, remove_shard
from pyserini_repbert.encode.parts import EncodingPart, finish_parts
from pyserini_repbert.errors import (
    DamagedFileError,
    InputError,
    MismatchError,
    PyseriniRepbertError,
)
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.manifest import (
    MANIFEST,
    SHARD,
    read_manifest,
    read_record,
    rendered,
    verify_files,
    write_json,
)
from pyserini_repbert.index.records import (
    BundleSettings,
    Manifest,
    SettingsT,
    ShardRecord,
    file_difference,
    shard_name,
)
from pyserini_repbert.index.shard_writer import ShardWriter, digested
from pyserini_repbert.models.batching import ahead, return_memory
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.trace import StageTimes

WRITING = 4  # groups that wait for the writer, which stops for checksums at the end of a shard


@dataclass(frozen=True)
class BundleEncoding(Generic[SettingsT]):
    """How passages become the shards of a bundle."""

    settings: SettingsT
    # Makes the context that writes a shard into a folder.
    writer: Callable[[Path, SettingsT], ShardWriter[Any, Any]]
    # Passages, and their token ids where `tokenizer` has workers, to what a writer takes.
    encode: Callable[..., Any]
    window: int  # how many passages `encode` gets together
    # None: the encoder has a tokenizer of another package.
    tokenizer: WordPieceTokenizer | None = None
    on_progress: Callable[[int], object] = (
        int  # gets the number of passages in a shard that is there already
    )
    times: StageTimes = field(default_factory=StageTimes)


def build_bundle(
    corpus: Iterable[Passage],
    output: StrPath,
    encoding: BundleEncoding[SettingsT],
    resume: bool = False,
    overwrite: bool = False,
) -> Manifest[SettingsT]:
    """Write the missing shards of a corpus into the index folder `output`, and then the manifest.

    An index that is overwritten stays until the new one is whole, which is made in a folder inside.
    An error before a shard is whole leaves `output` as it was; whole shards stay, for `resume`.
    """
    folder = Path(output)
    replacement = EncodingPart().folder(folder)
    if not (
        (overwrite and (folder / MANIFEST).is_file())
        or ((resume or overwrite) and replacement.is_dir())
    ):
        return _build(corpus, folder, encoding, resume, overwrite)
    check_place(folder)
    if overwrite or not (replacement / MANIFEST).is_file():
        _build(corpus, replacement, encoding, resume, overwrite)
    else:
        check_settings(
            folder, read_manifest(replacement, type(encoding.settings)).settings, encoding.settings
        )
    return finish_parts(folder, type(encoding.settings), overwrite=True)


def _build(
    corpus: Iterable[Passage],
    folder: Path,
    encoding: BundleEncoding[SettingsT],
    resume: bool,
    overwrite: bool,
) -> Manifest[SettingsT]:
    settings = encoding.settings
    stream = iter(corpus)
    # Read before anything is written: an error in the first passages touches no file.
    head = list(itertools.islice(stream, encoding.window))
    if not head:
        advice = 'give another corpus, or, of a part, fewer parts or smaller shards'
        raise InputError(
            f'there are no passages for {folder}: {advice}', parameters=('shard_size',)
        )
    with begun_output(folder, settings, resume, overwrite):
        groups = _groups(itertools.chain(head, stream), folder, encoding)
        try:
            total = _write_shards(groups, folder, encoding)
        except PyseriniRepbertError as error:
            if not resume and any(folder.glob('shard-*')):
                message = f'{error}; what was encoded before is kept in {folder}: resume it'
                raise type(error)(message, parameters=(*error.parameters, 'resume')) from error
            raise
        beyond = folder / shard_name(total)
        if beyond.exists():
            raise MismatchError(f'{beyond} lies beyond the end of the corpus: give the same corpus')
        shards = tuple(
            read_record(folder / shard_name(number) / SHARD, ShardRecord) for number in range(total)
        )
        manifest = Manifest(settings, sum(shard.count for shard in shards), shards, settings.kind)
        write_json(folder / MANIFEST, manifest, is_signed=True)
        return manifest


def _write_shards(
    groups: Iterator[tuple[int, list[Passage]]], folder: Path, encoding: BundleEncoding[SettingsT]
) -> int:
    """Encode groups of passages and write their shards; returns how many shards there are."""
    total = 0
    times = encoding.times
    with closing(_encoded(groups, encoding)) as encoded, times.busy('writing'):
        coming = times.making('waiting', encoded)
        for number, passages, vectors in coming:
            total = number + 1
            if not passages:
                continue
            target = folder / shard_name(number)
            remove_shard(target)
            with encoding.writer(target, encoding.settings) as writer:
                while passages:
                    writer.append(passages, vectors)
                    _, passages, vectors = next(coming)
    return total


def _groups(
    passages: Iterator[Passage], folder: Path, encoding: BundleEncoding[SettingsT]
) -> Iterator[tuple[int, list[Passage]]]:
    """The passages to encode, in groups, each with the number of its shard; an empty group ends
    a shard.
    """
    for number, first in enumerate(passages):
        of_shard = itertools.chain(
            [first], itertools.islice(passages, encoding.settings.shard_size - 1)
        )
        target = folder / shard_name(number)
        if (target / SHARD).is_file():
            encoding.on_progress(_compare_shard(target, encoding.settings, of_shard))
        while group := list(itertools.islice(of_shard, encoding.window)):
            yield number, group
        yield number, []


def _encoded(
    groups: Iterator[tuple[int, list[Passage]]], encoding: BundleEncoding[SettingsT]
) -> Generator[tuple[int, list[Passage], Any]]:
    """The groups with their vectors; where workers tokenise, groups are read, tokenised and
    encoded ahead.
    """
    times = encoding.times
    tokenizer = encoding.tokenizer
    reading = times.making('reading', groups)
    workers = None if tokenizer is None else tokenizer.workers
    tokenised: Generator[Any] = (((number, passages), ()) for number, passages in reading)
    if tokenizer is not None and workers is not None:
        stream = workers.stream(
            tokenizer.place,
            reading,
            lambda group: tokenizer.prompted([passage.text for passage in group[1]]),
            encoding.settings.max_length + 1,
        )
        tokenised = ahead((group, (ids,)) for group, ids in stream)

    def computed() -> Generator[tuple[int, list[Passage], Any]]:
        with closing(tokenised):
            for (number, passages), ids in tokenised:
                with times.busy('computing'):
                    vectors = encoding.encode(passages, *ids) if passages else None
                    return_memory()
                yield number, passages, vectors

    return computed() if workers is None else ahead(computed(), WRITING)


def _compare_shard(target: Path, settings: BundleSettings, passages: Iterator[Passage]) -> int:
    """The number of passages of the whole shard in the folder `target`, which was made from these
    passages.

    Raises MismatchError for other passages, and DamagedFileError where a file is not as it was
    written.
    """
    path = target / SHARD
    digest = hashlib.sha256()
    count = 0
    record = read_record(path, ShardRecord)
    for passage in passages:
        count += 1
        digest.update(digested(passage))
    if digest.hexdigest() != record.corpus_sha256:
        raise MismatchError(
            f'{target} was encoded from other passages: give the same corpus, or another output'
        )
    wrong = file_difference(record, settings)
    same = (record.folder, record.count, rendered(record).encode()) == (
        target.name,
        count,
        path.read_bytes(),
    )
    if wrong or not same:
        raise DamagedFileError(
            f'{path} {wrong or "is not as it was written"}: remove {target}, and resume: it is '
            f'encoded again',
            parameters=('resume',),
        )
    verify_files(target, record, remembered=False)
    return count

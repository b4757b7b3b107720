"""Building a bundle, dense or of term weights, from a corpus: streamed, sharded, resumable to the
same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from pyserini_repbert.models.ahead import ahead, return_memory
from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.trace import StageTimes

WRITING = 4  # groups that wait for the writer, which stops for checksums at the end of a shard


@dataclass(frozen=True)
class BundleEncoding(Generic[SettingsT]):
    """How passages become the shards of a bundle.

    Attributes
    ----------
    settings : of the bundle
    writer : makes the context that writes a shard into a folder
    encode : gives what a writer takes of passages, and of their token ids where `tokenizer` has
        workers
    window : how many passages `encode` gets together
    tokenizer : of the encoder; None: it has one of another package
    on_progress : called with the number of passages in a shard that is there already
    times : gets the seconds of each stage
    """

    settings: SettingsT
    writer: Callable[[Path, SettingsT], ShardWriter[Any, Any]]
    encode: Callable[..., Any]
    window: int
    tokenizer: WordPieceTokenizer | None = None
    on_progress: Callable[[int], object] = int
    times: StageTimes = field(default_factory=StageTimes)


@dataclass(frozen=True)
class _Group:
    """Passages of a shard that are encoded together; a group without passages ends its shard.

    Attributes
    ----------
    shard : the shard's number
    passages : in the order of the corpus
    token_ids : of the passages, where workers have tokenised them
    vectors : what the shard's writer takes of the passages, once they are encoded
    """

    shard: int
    passages: list[Passage]
    token_ids: TokenIds | None = None
    vectors: Any = None

    @property
    def ends_shard(self) -> bool:
        """Whether the shard has no further passages."""
        return not self.passages

    @property
    def texts(self) -> list[str]:
        """The texts of the passages."""
        return [passage.text for passage in self.passages]

    def encoded(self, encode: Callable[..., Any]) -> _Group:
        """The group with its vectors, which `encode` gives (`BundleEncoding.encode`)."""
        if self.ends_shard:
            return self
        arguments = [] if self.token_ids is None else [self.token_ids]
        return replace(self, vectors=encode(self.passages, *arguments))


def build_bundle(
    corpus: Iterable[Passage],
    output: StrPath,
    encoding: BundleEncoding[SettingsT],
    resume: bool = False,
    overwrite: bool = False,
) -> Manifest[SettingsT]:
    """Write the missing shards of a corpus into the index folder `output`, and then the manifest.

    An index that is overwritten stays until the new one, in a folder inside, is complete.
    An error before a shard is complete leaves `output` as it was; complete shards stay, for
    `resume`.
    """
    folder = Path(output)
    replacement = EncodingPart().folder(folder)
    replaces_index = overwrite and (folder / MANIFEST).is_file()
    goes_on_replacing = (resume or overwrite) and replacement.is_dir()
    if not (replaces_index or goes_on_replacing):
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
    """Write the missing shards of a corpus, and the manifest, into a folder that has no index."""
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
            n_shards = _write_shards(groups, folder, encoding)
        except PyseriniRepbertError as error:
            if not resume and any(folder.glob('shard-*')):
                message = f'{error}; what was encoded before is kept in {folder}: resume it'
                raise type(error)(message, parameters=(*error.parameters, 'resume')) from error
            raise
        beyond = folder / shard_name(n_shards)
        if beyond.exists():
            raise MismatchError(f'{beyond} lies beyond the end of the corpus: give the same corpus')
        shards = [
            read_record(folder / shard_name(number) / SHARD, ShardRecord)
            for number in range(n_shards)
        ]
        count = sum(shard.count for shard in shards)
        manifest = Manifest(settings, count, tuple(shards), settings.kind)
        write_json(folder / MANIFEST, manifest, is_signed=True)
        return manifest


def _write_shards(
    groups: Iterator[_Group], folder: Path, encoding: BundleEncoding[SettingsT]
) -> int:
    """Encode groups of passages and write their shards; returns how many shards there are."""
    n_shards = 0
    times = encoding.times
    with closing(_encoded(groups, encoding)) as encoded, times.busy('writing'):
        coming = times.making('waiting', encoded)
        for group in coming:
            n_shards = group.shard + 1
            if group.ends_shard:
                # It was there already.
                continue
            target = folder / shard_name(group.shard)
            remove_shard(target)
            with encoding.writer(target, encoding.settings) as writer:
                while not group.ends_shard:
                    writer.append(group.passages, group.vectors)
                    group = next(coming)
    return n_shards


def _groups(
    passages: Iterator[Passage], folder: Path, encoding: BundleEncoding[SettingsT]
) -> Iterator[_Group]:
    """The passages to encode, in groups; for an existing shard, only its end."""
    for number, first in enumerate(passages):
        of_shard = itertools.chain(
            [first], itertools.islice(passages, encoding.settings.shard_size - 1)
        )
        target = folder / shard_name(number)
        if (target / SHARD).is_file():
            encoding.on_progress(_compare_shard(target, encoding.settings, of_shard))
        while together := list(itertools.islice(of_shard, encoding.window)):
            yield _Group(number, together)
        yield _Group(number, [])


def _encoded(groups: Iterator[_Group], encoding: BundleEncoding[SettingsT]) -> Generator[_Group]:
    """The groups with their vectors; where workers tokenise, groups are read, tokenised and
    encoded ahead.
    """
    times = encoding.times
    tokenizer = encoding.tokenizer
    to_encode = times.making('reading', groups)
    workers = None if tokenizer is None else tokenizer.workers
    if tokenizer is not None and workers is not None:
        stream = workers.stream(
            tokenizer.number,
            to_encode,
            lambda group: tokenizer.prompted(group.texts),
            encoding.settings.max_length + 1,
        )
        to_encode = ahead(replace(group, token_ids=ids) for group, ids in stream)

    def computed() -> Generator[_Group]:
        with closing(to_encode):
            for group in to_encode:
                with times.busy('computing'):
                    encoded = group.encoded(encoding.encode)
                    return_memory()
                yield encoded

    return computed() if workers is None else ahead(computed(), WRITING)


def _compare_shard(target: Path, settings: BundleSettings, passages: Iterator[Passage]) -> int:
    """The number of passages of the complete shard in the folder `target`, which was made from
    these passages.

    Raises MismatchError for other passages, and DamagedFileError if a file is not as it was
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
            f'{path} {wrong or "differs from what was written"}: remove {target}, and resume: it '
            'is encoded again',
            parameters=('resume',),
        )
    verify_files(target, record, remembered=False)
    return count

"""Indexes by name: their folders, their catalog entries, and building missing ones."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.files import cache_folder, human_size
from pyserini_repbert.index.manifest import MANIFEST, read_manifest
from pyserini_repbert.index.records import DenseSettings
from pyserini_repbert.index.shard_writer import SHARD_SIZE, digested
from pyserini_repbert.names.building import OnBuild, build_silently

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import Corpus

_BYTES = {'float32': 4, 'float16': 2, 'int8': 1}
_USUAL_DIMENSION = 768  # of BERT-base


@dataclass(frozen=True)
class NamedIndex:
    """A catalog index for one encoder."""

    entry: catalog.Entry
    encoder: str  # catalog name or folder
    folder: Path  # of the index, whether or not it exists

    @property
    def collection(self) -> catalog.Entry:
        """The catalog entry of its collection."""
        return catalog.get('collections', str(self.entry.values['collection']))

    def check(self) -> None:
        """Raises MismatchError if the folder does not hold the catalog's index."""
        manifest = read_manifest(self.folder, DenseSettings)
        digest = over_shards([shard.corpus_sha256 for shard in manifest.shards])
        wrong = self.difference(manifest.count, digest)
        if wrong:
            raise MismatchError(
                f"{self.folder} {wrong}, so it is not the catalog's index '{self.entry.name}': "
                'move it to another folder and search it there, then build '
                f"'{self.entry.name}' again",
                parameters=('index',),
            )

    def check_corpus(self, corpus: Corpus) -> None:
        """Raises MismatchError for a corpus that is not the catalog's collection.

        Reads the corpus once.
        """
        shards: list[str] = []
        count = 0
        shard = hashlib.sha256()
        for passage in corpus:
            count += 1
            shard.update(digested(passage))
            if count % SHARD_SIZE == 0:
                shards.append(shard.hexdigest())
                shard = hashlib.sha256()
        if count % SHARD_SIZE or not count:
            shards.append(shard.hexdigest())
        wrong = self.difference(count, over_shards(shards))
        if wrong:
            raise MismatchError(
                f"corpus {corpus.name} {wrong}, so it cannot become the catalog's index "
                f"'{self.entry.name}': encode it with '{self.encoder}' and with stored "
                'texts into another folder, and search that folder',
                parameters=('index',),
            )

    def difference(self, count: int, digest: str) -> str | None:
        """How passages differ from the collection's; None if they do not.

        They are compared by number, and by digest if the catalog pins one.
        """
        collection = self.collection
        expected = int(collection.values['passages'])
        if count != expected:
            return f"has {count:,} passages, collection '{collection.name}' has {expected:,}"
        if digest != collection.values.get('corpus_sha256', digest):
            return f"does not have the passages of collection '{collection.name}'"
        return None

    @property
    def builds_itself(self) -> bool:
        """Whether the index is built on first use, without being asked for."""
        return bool(self.entry.values['build'] == 'on first use')


def over_shards(digests: Sequence[str]) -> str:
    """The sha256 of a corpus, from the digests of its shards of `SHARD_SIZE` passages."""
    return hashlib.sha256('\n'.join(digests).encode()).hexdigest()


def locate(index: str, encoder: str | None = None) -> Path | NamedIndex:
    """The index that a path or a name means: a catalog index, or an existing folder.

    A catalog index is built by `encoder`; default: the encoder that the catalog names. Raises
    UnknownNameError, with the nearest names, for anything else.
    """
    if catalog.find('indexes', index) is None and Path(index).exists():
        return Path(index)
    entry = catalog.get('indexes', index)
    chosen = encoder or str(entry.values['encoder'])
    return NamedIndex(entry, chosen, cache_folder() / 'indexes' / f'{index}.{_label(chosen)}')


def _label(encoder: str) -> str:
    """The part of a folder's name that identifies the encoder.

    For an encoder with checksums in the catalog, it changes with the weights.
    """
    entry = catalog.find('encoders', encoder)
    if entry is None:
        return Path(encoder).resolve().as_posix().strip('/').replace('/', '-')
    checksums = entry.values.get('sha256', {})
    if not checksums:
        return encoder
    return f'{encoder}.{"".join(checksums.values())[:8]}'


def _requirements(named: NamedIndex) -> str:
    """What building the index takes, in words: downloads, disk, and known hours."""
    encoder = catalog.find('encoders', named.encoder)
    collection = named.collection
    parts = [
        f'the download of {entry.name} ({entry.values["download"]["size"]})'
        for entry in (encoder, collection)
        if entry and 'download' in entry.values
    ]
    passages = collection.values['passages']
    dtype = named.entry.values['vectors']
    dimension = encoder.values['dimension'] if encoder else _USUAL_DIMENSION
    disk = human_size(passages * dimension * _BYTES[dtype])
    free = human_size(_free_bytes(named.folder))
    what = f'{passages:,} x {dimension} {dtype} vectors'
    parts.append(f'{disk} of disk for {what} ({free} are free)')
    hours = named.entry.values.get('hours', {})
    if named.encoder in hours:
        parts.append(hours[named.encoder])
    return '; '.join(parts)


def _free_bytes(folder: Path) -> int:
    """What the disk has left on which a folder is, or will be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def _build(
    named: NamedIndex,
    device: str,
    corpus: str | None,
    precision: str,
    on_progress: Callable[[int], object],
) -> None:
    """Build a catalog index, or continue building it.

    An index that builds itself is always built in float32: its results do not depend on who used it
    first.
    """
    from pyserini_repbert.encode.corpus import encode_corpus
    from pyserini_repbert.names.corpora import open_corpus
    from pyserini_repbert.systems.encoders import document_encoder

    passages = open_corpus(corpus or named.collection.name)
    if named.builds_itself:
        precision = 'float32'
    encoder = document_encoder(named.encoder, device, precision=precision)
    named.check_corpus(passages)
    encode_corpus(
        passages,
        encoder,
        named.folder,
        dtype=named.entry.values['vectors'],
        store_text=True,
        resume=named.folder.exists(),
        on_progress=on_progress,
    )


def ready_folder(
    index: str,
    encoder: str | None,
    device: str = 'cpu',
    asked_to_build: bool = False,
    corpus: str | None = None,
    precision: str = 'float32',
    on_build: OnBuild = build_silently,
) -> Path:
    """The folder of an index, ready to be searched; it is built first if necessary.

    Parameters
    ----------
    index, encoder : as in `locate`
    device : where a build encodes
    asked_to_build : build the index if it is missing; one that builds itself needs no asking
    corpus : a path or name of the catalog's collection, used only if `asked_to_build`
    precision : of the model, for a build
    on_build : called with the catalog's index before it is built

    Raises MissingResourceError for an unknown index and was not to be built, and
    MismatchError for one that is not, or would not be, the catalog's.
    """
    location = locate(index, encoder)
    if isinstance(location, Path):
        if asked_to_build:
            raise InputError(
                f"only the catalog's indexes can be built here; '{index}' is a folder: use the "
                'encode command',
                parameters=('build',),
            )
        return location
    if not (location.folder / MANIFEST).is_file():
        if not (location.builds_itself or asked_to_build):
            sentences = [
                f"index '{index}' for encoder '{location.encoder}' is not at {location.folder}",
                f'building it takes {_requirements(location)}',
            ]
            if 'instead' in location.entry.values:
                sentences.append(location.entry.values['instead'])
            sentences.append('ask for the index to be built')
            raise MissingResourceError('; '.join(sentences), parameters=('build',))
        # If no build was requested, `corpus` names the passages to rerank.
        passages = corpus if asked_to_build else None
        _build(location, device, passages, precision, on_build(location))
    location.check()
    return location.folder

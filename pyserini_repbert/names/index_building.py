"""Indexes by catalog name, built where they are missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.encoders import document_encoder
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.files import human_size
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.indexes import NamedIndex, locate

_BYTES = {'float32': 4, 'float16': 2}


def _requirements(named: NamedIndex) -> str:
    """What building the index takes, in words: downloads and disk."""
    encoder = catalog.find('encoders', named.encoder)
    collection = named.collection
    hidden, parts = BertConfig().hidden_size, []
    if encoder is not None and not {'package', 'resource'}.isdisjoint(encoder.values):
        from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

        hidden = BertConfig.from_dict(open_checkpoint(encoder.name).config).hidden_size
    elif encoder is not None:
        parts.append(f'checkpoint {encoder.name} ({encoder.values["download"]["size"]})')
    if 'download' in collection.values:
        parts.append(f'collection {collection.name} ({collection.values["download"]["size"]} packed)')
    passages, dtype = collection.values['passages'], named.entry.values['vectors']
    disk = human_size(passages * hidden * _BYTES[dtype])
    return '; '.join([*parts, f'{disk} of disk for {passages:,} x {hidden} {dtype} vectors'])


def build(
    named: NamedIndex,
    device: str = 'cpu',
    corpus: str | None = None,
    precision: str = 'float32',
    on_progress: Callable[[int], object] | None = None,
) -> Path:
    """Build a catalog index, or continue building it; returns its folder.

    Parameters
    ----------
    corpus : a path or name of the catalog's collection, instead of a download
    precision : of the model; an index that builds itself is always built in float32, so that its results do not depend
        on who used it first
    on_progress : called with the number of passages encoded since the last call

    Raises MismatchError for a corpus that is not the catalog's collection.
    """
    chosen = 'float32' if named.builds_itself else precision
    passages = open_corpus(corpus or named.collection.name)
    encoder = document_encoder(named.encoder, device, precision=chosen)
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
    return named.folder


def ready_folder(
    index: str,
    encoder: str | None,
    device: str = 'cpu',
    asked_to_build: bool = False,
    corpus: str | None = None,
    precision: str = 'float32',
    on_build: Callable[[NamedIndex], Callable[[int], object] | None] | None = None,
) -> Path:
    """The folder of an index, ready to be searched; built first where it builds itself or `asked_to_build`.

    Parameters
    ----------
    index, encoder : as in `locate`
    corpus : a path or name of the catalog's collection; used only if `asked_to_build`
    precision : of the model, for a build
    on_build : called with the index before it is built; returns the progress callback

    Raises
    ------
    InputError
        where a folder was `asked_to_build`
    UnknownNameError
        for a name that is neither a folder nor in the catalog
    MissingResourceError
        for an index that is not there and was not to be built; says what building takes
    MismatchError
        for an index that is not, or would not be, the catalog's
    """
    location = locate(index, encoder)
    if isinstance(location, Path):
        if asked_to_build:
            raise InputError(
                f"only the catalog's indexes can be built here; '{index}' is a folder: use the encode command",
                parameters=('build',),
            )
        return location
    if not location.is_built:
        if not (location.builds_itself or asked_to_build):
            raise MissingResourceError(
                f"index '{index}' for encoder '{location.encoder}' is not at {location.folder}; building it takes "
                f'{_requirements(location)}: ask for it to be built',
                parameters=('build',),
            )
        passages = corpus if asked_to_build else None  # otherwise it names the passages to rerank
        build(location, device, passages, precision, on_build(location) if on_build else None)
    location.check()
    return location.folder

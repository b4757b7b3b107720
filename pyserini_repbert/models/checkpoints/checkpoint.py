"""Opening checkpoints by catalog name or folder."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.checksums import CHECKSUMS, verify_checksums
from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError, UnknownNameError
from pyserini_repbert.models.checkpoints.folder import ADAPTER_CONFIG, Checkpoint
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import OWN_ENGINE, Model

__all__ = ['AnyCheckpoint', 'Checkpoint', 'open_checkpoint']

_REPOSITORY = re.compile(r'[\w.-]+/[\w.-]+')  # of the hub
AnyCheckpoint = str | Path | Checkpoint  # by catalog name, by folder, or opened


def open_checkpoint(name: AnyCheckpoint, kind: str = 'encoders') -> Checkpoint:
    """A checkpoint by catalog name, folder or repository of the hub (`folder_of`).

    What the catalog names under `kind`, 'encoders' or 'rerankers', is downloaded and converted on
    first use. An adapter is opened with the checkpoint that it adapts, which may be an adapter,
    too. A `Checkpoint` is returned unchanged.
    """
    if isinstance(name, Checkpoint):
        return name
    return _open(name, kind, ())


def _open(name: str | Path, kind: str, above: tuple[Path, ...]) -> Checkpoint:
    """`above` are the folders of the adapters over this checkpoint."""
    entry = catalog.find(kind, str(name))
    if entry is None:
        folder = folder_of(name)
        if not folder.is_dir():
            entry = catalog.get(kind, str(name))
    ranking = None
    if entry is not None:
        folder = _folder_of_entry(entry)
        ranking = entry.values.get('ranking')
    verify(folder)
    base = None
    if (folder / ADAPTER_CONFIG).is_file():
        base = _open_base(folder, kind, above)
    return Checkpoint.open(folder, str(name), ranking, base)


def _folder_of_entry(entry: catalog.Entry) -> Path:
    """The folder of a checkpoint of the catalog, which is fetched if need be."""
    from pyserini_repbert.models.checkpoints import hub

    if 'warning' in entry.values:
        _warn(entry.values['warning'])
    if 'package' in entry.values:
        return hub.packaged_checkpoint(entry)
    if 'resource' in entry.values:
        return catalog.resource(entry)
    if 'hub' in entry.values:
        return hub.hub_checkpoint(entry)
    return hub.downloaded_checkpoint(entry)


def _open_base(folder: Path, kind: str, above: tuple[Path, ...]) -> Checkpoint:
    """The checkpoint that the adapter in `folder` adapts.

    Raises DamagedFileError for an adapter without a base, or over itself.
    """
    path = folder / ADAPTER_CONFIG
    name = read_object(path).get('base_model_name_or_path')
    if not isinstance(name, str):
        raise DamagedFileError(f'{path} does not name its base: fetch the adapter again')
    if folder.resolve() in above:
        raise DamagedFileError(
            f'{path} names a base that is an adapter over itself: name the one beneath them'
        )
    return _open(name, catalog.checkpoint_kind(name) or kind, (*above, folder.resolve()))


def checkpoint_name(name: AnyCheckpoint) -> str:
    """What a checkpoint is called."""
    return name.name if isinstance(name, Checkpoint) else str(name)


def encoder_folder(name: AnyCheckpoint) -> Path:
    """The folder of an encoder, whose config.json may be in a module's folder.

    Parameters
    ----------
    name : a catalog name, a folder, a repository of the hub (`folder_of`), or an open checkpoint

    Raises DamagedFileError for files that differ from the checksums beside them.
    """
    if isinstance(name, Checkpoint) or catalog.find('encoders', str(name)) is not None:
        return open_checkpoint(name).folder
    folder = folder_of(name)
    verify(folder)
    return folder


def folder_of(name: str | Path) -> Path:
    """The folder that a name means: its own, or in the Hugging Face hub's cache for a repository,
    'ORG/NAME'.

    Raises UnknownNameError for a repository that does not exist.
    """
    if Path(name).exists() or not _REPOSITORY.fullmatch(str(name)):
        return Path(name)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(name), local_files_only=True))
    except Exception as error:  # the client has errors of many classes
        raise UnknownNameError(
            f"'{name}' is not a folder here, and no repository in the hub's cache: check the path, "
            f'or fetch the '
            f'repository with `hf download {name}`'
        ) from error


def unlisted_folder(name: AnyCheckpoint) -> Path | None:
    """The folder that a name means; None for a name of the catalog, and for an open checkpoint.

    Raises the error of `folder_of`.
    """
    if not isinstance(name, (str, Path)) or catalog.checkpoint_kind(str(name)) is not None:
        return None
    return folder_of(name)


@cache
def _warn(text: str) -> None:
    """Warn of a checkpoint, once a process."""
    logging.getLogger(__name__).warning(text)


def verify(folder: Path) -> None:
    """Compare a checkpoint's files with the checksums beside them, if there are any.

    Raises DamagedFileError.
    """
    if (folder / CHECKSUMS).is_file():
        try:
            verify_checksums(folder, required=())
        except DamagedFileError as error:
            raise DamagedFileError(
                f'{error}. If you changed it on purpose, remove {folder / CHECKSUMS}'
            ) from error


def used_models(user: object) -> tuple[Model, ...]:
    """The model of an encoder or a reranker; empty for an object without weights.

    A sentence-transformers model has one checksum, which covers all files of the folder.
    """
    checkpoint = getattr(user, 'checkpoint', None)
    precision = str(getattr(user, 'precision', ''))
    engine = str(getattr(user, 'engine', OWN_ENGINE))
    if isinstance(checkpoint, Checkpoint):
        return (replace(model_of(checkpoint, precision), engine=engine),)
    sha256 = getattr(user, 'weights_sha256', None)
    if not isinstance(sha256, str):
        return ()
    return (Model(str(getattr(user, 'name', '')), sha256, sha256, sha256, precision, engine),)


def models_of(ranker: Ranker) -> tuple[Model, ...]:
    """The models that a ranker runs, each once; workers on other devices tell theirs."""
    models: list[Model] = []
    for leaf in ranker.leaves():
        encoder = getattr(leaf, 'query_encoder', leaf)
        models += getattr(leaf, 'models', used_models(getattr(encoder, 'encoder', encoder)))
    return tuple(dict.fromkeys(models))


def model_of(checkpoint: Checkpoint, precision: str) -> Model:
    """A checkpoint's name and precision, and the checksums of its weights, tokenizer and config,
    for a record.
    """
    config = hashlib.sha256(json.dumps(checkpoint.config, sort_keys=True).encode()).hexdigest()
    return Model(
        checkpoint.name, checkpoint.weights_sha256, checkpoint.tokenizer_sha256, config, precision
    )

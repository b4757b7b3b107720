"""Shared by the converters of published checkpoints: archives, weights, sizes and vocabularies."""

from __future__ import annotations

import pickle
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert import catalog
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import DamagedFileError, InputError, MissingResourceError
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.models.checkpoints.folder import Checkpoint

_HEAD_SIZE = 64  # dimensions of an attention head in every BERT that its authors published
_NEEDED = re.compile(r'\.(index|data-\d+-of-\d+)$|(^|/)((bert_)?config\.json|pytorch_model\.bin|vocab\.txt)$')


def check_absent(target: Path) -> None:
    """Raises InputError if `target` exists."""
    if target.exists():
        raise InputError(f'{target} exists: remove it or choose another output')


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a checkpoint's files from a .zip into `folder`, and return `folder`. Raises DamagedFileError."""
    try:
        with zipfile.ZipFile(archive) as stream:
            for member in stream.infolist():
                if _NEEDED.search(member.filename):
                    stream.extract(member, folder)
    except zipfile.BadZipFile as error:
        raise DamagedFileError(f'{archive} is not a whole zip archive ({error}): fetch it again') from error
    return folder


def sizes_of(shapes: Mapping[str, Sequence[int]], heads: int | None = None) -> dict[str, Any]:
    """The sizes of a BERT for its config.json, from the shapes of its weights (Hugging Face's names).

    The shapes do not tell the number of attention heads: by default there is one per 64 dimensions. Raises KeyError
    for a missing weight.
    """
    vocabulary, hidden = shapes['bert.embeddings.word_embeddings.weight']
    layers = {name.split('.')[3] for name in shapes if name.startswith('bert.encoder.layer.')}
    return {
        'model_type': 'bert',
        'vocab_size': vocabulary,
        'hidden_size': hidden,
        'num_hidden_layers': len(layers),
        'num_attention_heads': heads or max(1, hidden // _HEAD_SIZE),
        'intermediate_size': shapes['bert.encoder.layer.0.intermediate.dense.bias'][0],
        'max_position_embeddings': shapes['bert.embeddings.position_embeddings.weight'][0],
        'type_vocab_size': shapes['bert.embeddings.token_type_embeddings.weight'][0],
    }


@contextmanager
def converted(
    target: Path, source: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], vocabulary: Path
) -> Iterator[Checkpoint]:
    """A new checkpoint, for loading its model in the context; its folder appears at `target` unless that fails."""
    with atomic_folder(target) as made:
        shutil.copyfile(vocabulary, made / 'vocab.txt')
        yield Checkpoint.write(made, config, tensors, str(source))
        write_checksums(made)


def load_legacy(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch `.bin`, `.pt` or `.p` file by name; no code in the file is run.

    Raises DamagedFileError for a file that does not hold tensors by name.
    """
    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedFileError(f'{path} is not a file of PyTorch weights ({reason}): fetch it again') from error
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise DamagedFileError(f'{path} does not hold a mapping of names to tensors')
    return dict(state)


def vocabulary_of(folder: Path, given: Path | None) -> Path:
    """The vocab.txt in a folder, else the given one, else `uncased_vocabulary`, whose error this raises."""
    own = folder / 'vocab.txt'
    return own if own.is_file() else given or uncased_vocabulary()


def uncased_vocabulary() -> Path:
    """bert-base-uncased's vocab.txt. Raises MissingResourceError if the package that carries it is not installed."""
    try:
        return catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
    except MissingResourceError as error:
        raise MissingResourceError(
            f'the checkpoint has no vocab.txt: give one, or {error}', parameters=('vocabulary',)
        ) from error

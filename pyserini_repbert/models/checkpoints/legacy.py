"""Checkpoints of earlier forms: weights in PyTorch's own format, and no vocabulary beside them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError, MissingResourceError


def load_legacy(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch `.bin`, `.pt` or `.p` file by name; no code in the file is run."""
    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedFileError(
            f'{path} is not a file of PyTorch weights ({reason}): fetch it again'
        ) from error
    if not isinstance(state, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in state.values()
    ):
        raise DamagedFileError(f'{path} does not hold a mapping of names to tensors')
    return dict(state)


def uncased_vocabulary() -> Path:
    """bert-base-uncased's vocab.txt.

    Raises MissingResourceError if the package that carries it is not installed.
    """
    try:
        return catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
    except MissingResourceError as error:
        raise MissingResourceError(
            f'the checkpoint has no vocab.txt: give one, or {error}', parameters=('vocabulary',)
        ) from error

"""Weights and vocabularies as older checkpoints have them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError, MissingResourceError

if TYPE_CHECKING:
    from torch import Tensor


def load_legacy(path: Path) -> dict[str, Tensor]:
    """The tensors of a PyTorch `.bin`, `.pt` or `.p` file, read with `weights_only=True`: no code in it is run."""
    import torch

    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedFileError(f'{path} is not a file of PyTorch weights ({reason}): fetch it again') from error
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise DamagedFileError(f'{path} does not hold a mapping of names to tensors')
    return dict(state)


def uncased_vocabulary() -> Path:
    """bert-base-uncased's vocab.txt. Raises MissingResourceError where the package that carries it is not installed."""
    try:
        return catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
    except MissingResourceError as error:
        raise MissingResourceError(f'the checkpoint has no vocab.txt: give --vocabulary, or {error}') from error

"""The weights of a folder of sentence-transformers, by the names of this package's networks."""

from __future__ import annotations

from torch import Tensor

from pyserini_repbert.models.checkpoints.folder import WEIGHTS
from pyserini_repbert.models.checkpoints.weights import read_weights
from pyserini_repbert.systems.sentence_transformers.folder import BiEncoder, Body

_BODY = 'bert.'
_POOLER = 'bert.pooler.'
_CLASSIFIER = 'classifier.'


def bi_encoder_tensors(model: BiEncoder, mapped: str | None = None) -> dict[str, Tensor]:
    """The tensors of a `SentenceBert`: the body's without its pooler, and the dense layers'.

    Parameters
    ----------
    model : what its folder says
    mapped : weights whose names end so stay in their file
    """
    tensors = {}
    for name, value in model.body.checkpoint.tensors(mapped).items():
        # Other heads, as of a language model, have no part in the vectors.
        if name.startswith(_BODY) and not name.startswith(_POOLER):
            tensors[name] = value
    for number, layer in enumerate(model.layers):
        if layer is not None:
            for name, value in read_weights(layer.folder / WEIGHTS).items():
                tensors[f'layers.{number}.{name}'] = value
    return tensors


def cross_encoder_tensors(body: Body) -> dict[str, Tensor]:
    """The tensors of a `CrossEncoder`: the body's, and its classifier's."""
    tensors = {}
    for name, value in body.checkpoint.tensors().items():
        if name.startswith((_BODY, _CLASSIFIER)):
            tensors[name] = value
    return tensors

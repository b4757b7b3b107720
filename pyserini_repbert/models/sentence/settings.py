"""The settings of models of sentence-transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.models.checkpoints.folder import Checkpoint

MODULES = 'modules.json'


class DenseStep(NamedTuple):
    """A linear layer and an activation, after pooling.

    Attributes
    ----------
    weights : the layer's safetensors file
    size_in, size_out : lengths of the vectors before and after it
    bias : whether the layer has one
    activation : its name in torch.nn
    """

    weights: Path
    size_in: int
    size_out: int
    bias: bool
    activation: str


class TextSettings(NamedTuple):
    """How texts become model inputs.

    Attributes
    ----------
    max_tokens : tokens of the longest input, special tokens included
    lowercase : whether texts are lower-cased before they are tokenised
    segments : whether the tokens of a second text have token type 1; else all have 0
    """

    max_tokens: int
    lowercase: bool
    segments: bool


@dataclass(frozen=True)
class EncoderSettings:
    """A bi-encoder.

    Attributes
    ----------
    texts : how texts become model inputs
    poolings : how token vectors become one; the vectors of several poolings are joined
    dense : layers after pooling
    normalise : whether vectors are scaled to length 1 at the end, by a Normalize module or because similarity is cosine
    query_prompt, passage_prompt : put before each query and each passage
    """

    texts: TextSettings
    poolings: tuple[str, ...]
    dense: tuple[DenseStep, ...]
    normalise: bool
    query_prompt: str
    passage_prompt: str

    @property
    def label(self) -> str:
        """The steps after the body: 'cls+dense+normalised'."""
        return '+'.join([*self.poolings, *['dense'] * len(self.dense), *['normalised'] * self.normalise])


@dataclass(frozen=True)
class RerankerSettings:
    """A cross-encoder.

    Attributes
    ----------
    texts : how texts become model inputs
    activation : of the logit, its name in torch.nn
    prompt : put before each query
    """

    texts: TextSettings
    activation: str
    prompt: str


def is_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a bi-encoder of sentence-transformers, not of one of this package's systems."""
    return 'ranking' not in checkpoint.config and (checkpoint.folder / MODULES).is_file()


def is_reranker(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier with one label, and not of one of this package's systems."""
    labels = checkpoint.config.get('id2label')
    return 'ranking' not in checkpoint.config and isinstance(labels, dict) and len(labels) == 1

"""The settings of models of sentence-transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.models.checkpoints.folder import Checkpoint

MODULES = 'modules.json'


class DenseStep(NamedTuple):
    """A linear layer, whose file is `weights`, and an activation after pooling."""

    weights: Path
    size_in: int
    size_out: int
    bias: bool
    activation: str


class TextSettings(NamedTuple):
    """How texts become model inputs.

    Attributes
    ----------
    max_tokens : of an input, special tokens included
    lowercase : whether texts are lower-cased before the tokenizer sees them
    segments : whether the model is told which tokens are the second text's
    """

    max_tokens: int
    lowercase: bool
    segments: bool


@dataclass(frozen=True)
class EncoderSettings:
    """A bi-encoder.

    Attributes
    ----------
    poolings : how token vectors become one; the results of several are joined
    dense : layers after it
    normalise : whether vectors are scaled to length 1 at the end: by a module, or for the cosine that the folder names
    query_prompt, passage_prompt : put before texts
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
    """A cross-encoder; `prompt` is put before the query."""

    texts: TextSettings
    activation: str
    prompt: str


def is_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a bi-encoder of sentence-transformers, and none of this package's systems."""
    return 'ranking' not in checkpoint.config and (checkpoint.folder / MODULES).is_file()


def is_reranker(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a classifier with one label, as cross-encoders of sentence-transformers are."""
    labels = checkpoint.config.get('id2label')
    return 'ranking' not in checkpoint.config and isinstance(labels, dict) and len(labels) == 1

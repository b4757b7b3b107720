"""The checkpoints that a command has run, for its record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.record import Model


def used_models(users: Iterable[object]) -> tuple[Model, ...]:
    """The models of encoders and rerankers, each once; objects without weights are skipped.

    One checksum stands for a model of sentence-transformers: it covers all files of the folder.
    """
    models: dict[Model, None] = {}
    for user in users:
        checkpoint, precision = getattr(user, 'checkpoint', None), str(getattr(user, 'precision', ''))
        sha256 = getattr(user, 'weights_sha256', None)
        if isinstance(checkpoint, Checkpoint):
            models[model_of(checkpoint, precision)] = None
        elif isinstance(sha256, str):
            models[Model(str(getattr(user, 'name', '')), sha256, sha256, sha256, precision)] = None
    return tuple(models)


def model_of(checkpoint: Checkpoint, precision: str) -> Model:
    """A checkpoint's name and precision, and the checksums of its weights, tokenizer and config, for a record."""
    config = hashlib.sha256(json.dumps(checkpoint.config, sort_keys=True).encode()).hexdigest()
    return Model(checkpoint.name, checkpoint.weights_sha256, checkpoint.tokenizer_sha256, config, precision)

"""The checkpoints that a command has run, for its record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from pyserini_repbert.catalog import cache_folder
from pyserini_repbert.files import remembered_digest
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.record import Model

_TOKENIZER = ('vocab.txt', 'tokenizer_config.json')  # if there is no tokenizer.json


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
    config = json.dumps(checkpoint.config, sort_keys=True)
    return Model(checkpoint.name, checkpoint.weights_sha256, _tokenizer(checkpoint), _sha256(config), precision)


def _tokenizer(checkpoint: Checkpoint) -> str:
    """Checksum of the tokenizer's file, the checkpoint's or its base's; of two files, over their checksums."""
    folder = checkpoint.tokenizer_folder
    whole = folder / 'tokenizer.json'
    files = [whole] if whole.is_file() else [folder / name for name in _TOKENIZER]
    digests = [remembered_digest(file, cache_folder()) for file in files if file.is_file()]
    return digests[0] if len(digests) == 1 else _sha256('\n'.join(digests))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

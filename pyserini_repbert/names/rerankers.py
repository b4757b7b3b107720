"""A reranker by its name: a catalog name, a checkpoint folder, or MODULE:CLASS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import MismatchError
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.names.rankers import arguments_of, names_class, ranker_class
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.systems.registry import (
    System,
    load,
    recognised_system,
    rerankers,
    systems,
)
from pyserini_repbert.systems.sentence_transformers.recognising import is_cross_encoder

PLAIN_CROSS_ENCODER = 'monobert'  # what a checkpoint is taken for that names no system


def open_reranker(
    name: str | Path, device: str = 'cpu', options: Mapping[str, Any] | None = None, **settings: Any
) -> Reranker:
    """Open the reranker of a checkpoint, by its config.json or catalog entry.

    A folder of others is opened by the system that recognises it. A checkpoint that names no system
    is taken for a cross-encoder of sentence-transformers if it has one label, otherwise for
    monoBERT.

    Parameters
    ----------
    name : a catalog name, a checkpoint folder, or 'MODULE:CLASS' for your own reranker
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    options : keyword arguments that the reranker must have
    settings : precision, backend, token_budget, …: passed on if the reranker has them

    Raises
    ------
    MismatchError : the checkpoint is for a system that does not rerank
    InputError : the reranker lacks an option
    """
    if names_class(str(name)):
        return _open_own(str(name), options or {}, {'device': device, **settings})
    model: str | Path | Checkpoint = name
    system = recognised_system(name)
    if system is None:
        model = open_checkpoint(name, 'rerankers')
        system = reranking_system(model)
    reranker_class = load(str(system.reranker))
    arguments = arguments_of(reranker_class, str(name), options or {}, settings)
    reranker: Reranker = reranker_class(model, device, **arguments)
    return reranker


def reranking_system(checkpoint: Checkpoint) -> System:
    """The system whose reranker reads a checkpoint.

    Raises MismatchError if the checkpoint is for a system that does not rerank.
    """
    if is_cross_encoder(checkpoint):
        return systems()['sentence-transformers']
    named = checkpoint.config.get('ranking', {}).get('system', PLAIN_CROSS_ENCODER)
    if named not in rerankers():
        raise MismatchError(
            f"checkpoint '{checkpoint.name}' is for system '{named}', expected a reranker: "
            f'{", ".join(rerankers())}{missing_extension(str(named))}'
        )
    return systems()[named]


def _open_own(name: str, options: Mapping[str, Any], settings: Mapping[str, Any]) -> Reranker:
    """A reranker of the user's own, by 'MODULE:CLASS'."""
    reranker_class: Any = ranker_class(name, False)
    reranker: Reranker = reranker_class(**arguments_of(reranker_class, name, options, settings))
    return reranker.with_settings(name=name)

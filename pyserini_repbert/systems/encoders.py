"""Encoders by name: RepBERT's, another system's, or the one of a sentence-transformers folder.

They are dense, or weigh terms (`term_weights_encoder`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextQueryEncoder
from pyserini_repbert.errors import MismatchError, UnknownNameError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    checkpoint_name,
    open_checkpoint,
)
from pyserini_repbert.systems.registry import System, load, recognised_system, systems
from pyserini_repbert.systems.sentence_transformers.recognising import is_sentence_folder

if TYPE_CHECKING:
    from pyserini_repbert.encode.term_weights import TermWeightsEncoder

_PLAIN_BERT = 'repbert'
_EPIC = 'epic'
_SENTENCE_TRANSFORMERS = 'sentence-transformers'


def query_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextQueryEncoder:
    """The query encoder of a checkpoint; a plain BERT counts as RepBERT's.

    Parameters
    ----------
    name : catalog name, checkpoint folder, or an open checkpoint
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    settings : precision and max_length; `open_encoder`, an open encoder: if it runs the same
        checkpoint on the same device in the same precision, both share the model
    """
    model = _encoding_model(name)
    encoder_class = load(str(model.system.query_encoder))
    encoder: TextQueryEncoder = encoder_class(model.checkpoint, device, **settings)
    return encoder


def document_encoder(
    name: AnyCheckpoint, device: str = 'cpu', **settings: Any
) -> TextDocumentEncoder:
    """The document encoder of a checkpoint; takes the parameters of `query_encoder`."""
    model = _encoding_model(name)
    encoder_class = load(str(model.system.document_encoder))
    encoder: TextDocumentEncoder = encoder_class(model.checkpoint, device, **settings)
    return encoder


def term_weights_encoder(
    name: str | Path, device: str = 'cpu', **settings: Any
) -> TermWeightsEncoder:
    """The encoder of term weights of a `SparseEncoder` folder, or of an EPIC checkpoint.

    Parameters
    ----------
    name : catalog name, or folder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    settings : precision and max_length

    Raises MismatchError for a folder of a system that gives no term weights.
    """
    system = recognised_system(name) or systems()[_EPIC]
    if system.term_weights_encoder is None:
        raise MismatchError(
            f"'{name}' is {system.description}, an encoder of term weights was expected: "
            f'{system.advice}'
        )
    encoder_class = load(system.term_weights_encoder)
    encoder: TermWeightsEncoder = encoder_class(name, device, **settings)
    return encoder


@contextmanager
def stored_name(place: str) -> Iterator[None]:
    """A context in which the encoder is opened that an index or a collection names.

    It may name a folder by a path that led there from where the index was made. `place` is what a
    message calls the index. Raises UnknownNameError that says so for an encoder that is not found.
    """
    try:
        yield
    except UnknownNameError as error:
        raise UnknownNameError(
            f'{place} names an unavailable encoder: {error}', parameters=('encoder',)
        ) from error


@dataclass(frozen=True)
class _EncodingModel:
    """The system whose encoders read a checkpoint, and the checkpoint, opened if it is ours."""

    system: System
    checkpoint: AnyCheckpoint


def _encoding_model(name: AnyCheckpoint) -> _EncodingModel:
    """The system whose encoders read a checkpoint.

    A checkpoint of a system without encoders is RepBERT's to refuse. Raises MismatchError for a
    folder of others whose system has no dense encoders.
    """
    system = recognised_system(name)
    if system is not None and system.query_encoder is None:
        raise MismatchError(
            f"'{checkpoint_name(name)}' is {system.description}, an encoder of dense vectors was "
            f'expected: {system.advice}'
        )
    if system is not None:
        return _EncodingModel(system, name)
    if is_sentence_folder(name):
        return _EncodingModel(systems()[_SENTENCE_TRANSFORMERS], name)
    checkpoint = open_checkpoint(name)
    ranking = checkpoint.config.get('ranking', {})
    named = systems().get(ranking.get('system', _PLAIN_BERT))
    if named is None or named.query_encoder is None:
        named = systems()[_PLAIN_BERT]
    return _EncodingModel(named, checkpoint)

"""Encoders by name: RepBERT's, another system's, or those of a sentence-transformers folder."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.systems.registry import System, load, systems
from pyserini_repbert.systems.sentence_transformers.encoder import is_sentence_folder

_PLAIN_BERT = 'repbert'
_SENTENCE_TRANSFORMERS = 'sentence-transformers'


def query_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextQueryEncoder:
    """The query encoder of a checkpoint; a plain BERT counts as RepBERT's.

    Parameters
    ----------
    name : catalog name, checkpoint folder, or an open checkpoint
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    settings : precision and max_length
    """
    encoder_class = load(str(encoding_system(name).query_encoder))
    encoder: TextQueryEncoder = encoder_class(name, device, **settings)
    return encoder


def document_encoder(
    name: AnyCheckpoint, device: str = 'cpu', **settings: Any
) -> TextDocumentEncoder:
    """The document encoder of a checkpoint; parameters are those of `query_encoder`."""
    encoder_class = load(str(encoding_system(name).document_encoder))
    encoder: TextDocumentEncoder = encoder_class(name, device, **settings)
    return encoder


def encoding_system(name: AnyCheckpoint) -> System:
    """The system whose encoders read a checkpoint.

    A checkpoint of a system without encoders is RepBERT's to refuse.
    """
    if is_sentence_folder(name):
        return systems()[_SENTENCE_TRANSFORMERS]
    ranking = open_checkpoint(name).config.get('ranking', {})
    named = systems().get(ranking.get('system', _PLAIN_BERT))
    if named is None or named.query_encoder is None:
        return systems()[_PLAIN_BERT]
    return named

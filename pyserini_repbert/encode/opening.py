"""The encoder of a checkpoint: RepBERT's, or one of sentence-transformers."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.encode.encoders import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.encode.sentence import SentenceDocumentEncoder, SentenceQueryEncoder, is_sentence_folder
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint


def query_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextQueryEncoder:
    """The query encoder of a checkpoint; a plain BERT counts as RepBERT's.

    Errors are those of `RepBertQueryEncoder` and `SentenceQueryEncoder`.

    Parameters
    ----------
    name : catalog name, checkpoint folder, or an open checkpoint
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    settings : precision and max_length
    """
    kind: Any = SentenceQueryEncoder if is_sentence_folder(name) else RepBertQueryEncoder
    encoder: TextQueryEncoder = kind(name, device, **settings)
    return encoder


def document_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextDocumentEncoder:
    """The document encoder of a checkpoint. Parameters and errors are those of `query_encoder`."""
    kind: Any = SentenceDocumentEncoder if is_sentence_folder(name) else RepBertDocumentEncoder
    encoder: TextDocumentEncoder = kind(name, device, **settings)
    return encoder

"""The encoder of a checkpoint: RepBERT's, or one of sentence-transformers."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.encode.encoders import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.encode.sentence import SentenceDocumentEncoder, SentenceQueryEncoder
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.sentence.settings import is_encoder


def query_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextQueryEncoder:
    """The query encoder of a checkpoint; a plain BERT counts as RepBERT's.

    Errors are those of `RepBertQueryEncoder`, and InputError for a model of sentence-transformers with a module or a
    setting that is not supported.

    Parameters
    ----------
    name : catalog name, checkpoint folder, or an open checkpoint
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    settings : precision and max_length
    """
    checkpoint = open_checkpoint(name)
    kind = SentenceQueryEncoder if is_encoder(checkpoint) else RepBertQueryEncoder
    return kind(checkpoint, device, **settings)


def document_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextDocumentEncoder:
    """The document encoder of a checkpoint. Parameters and errors are those of `query_encoder`."""
    checkpoint = open_checkpoint(name)
    kind = SentenceDocumentEncoder if is_encoder(checkpoint) else RepBertDocumentEncoder
    return kind(checkpoint, device, **settings)

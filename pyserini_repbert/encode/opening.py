"""The encoder that a checkpoint is for: RepBERT's, or that of a sentence-transformers folder."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.encode.encoders import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.encode.sentence import SentenceDocumentEncoder, SentenceQueryEncoder
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder, TextQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.sentence.settings import is_encoder


def query_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextQueryEncoder:
    """The query encoder of a catalog name or a folder; a plain BERT is taken for RepBERT's.

    Parameters
    ----------
    settings : precision and max_length, as of `RepBertQueryEncoder`, whose errors these are
    """
    checkpoint = open_checkpoint(name)
    kind = SentenceQueryEncoder if is_encoder(checkpoint) else RepBertQueryEncoder
    return kind(checkpoint, device, **settings)


def document_encoder(name: AnyCheckpoint, device: str = 'cpu', **settings: Any) -> TextDocumentEncoder:
    """The document encoder of a catalog name or a folder. Parameters and errors are those of `query_encoder`."""
    checkpoint = open_checkpoint(name)
    kind = SentenceDocumentEncoder if is_encoder(checkpoint) else RepBertDocumentEncoder
    return kind(checkpoint, device, **settings)

"""From texts to vectors: RepBERT's encoders under Pyserini's contract, and the encoding of whole corpora."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.encode.corpus import encode_corpus as encode_corpus
    from pyserini_repbert.encode.encoders import (
        RepBertDocumentEncoder as RepBertDocumentEncoder,
        RepBertQueryEncoder as RepBertQueryEncoder,
    )

__getattr__, __dir__, __all__ = exports(__name__)

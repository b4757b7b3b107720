"""From texts to vectors: encoders under Pyserini's contract, and the encoding of whole corpora."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.encode.corpus import encode_corpus as encode_corpus
    from pyserini_repbert.systems.encoders import (
        document_encoder as document_encoder,
        query_encoder as query_encoder,
    )
    from pyserini_repbert.systems.repbert.encoder import (
        RepBertDocumentEncoder as RepBertDocumentEncoder,
        RepBertQueryEncoder as RepBertQueryEncoder,
    )

_NAMES = {
    'pyserini_repbert.encode.corpus': ('encode_corpus',),
    'pyserini_repbert.systems.encoders': ('document_encoder', 'query_encoder'),
    'pyserini_repbert.systems.repbert.encoder': ('RepBertDocumentEncoder', 'RepBertQueryEncoder'),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)

"""An index of 300 passages for an encoder that knows nothing, to learn over."""

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search import DenseSearcher


@pytest.fixture
def searcher(tiny_checkpoint, corpus_file, tmp_path):
    """Searches 300 passages 'd0' … 'd299'."""
    encode_corpus(
        open_corpus(corpus_file(300)), RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'index'
    )
    return DenseSearcher(tmp_path / 'index').with_settings(name='tiny')

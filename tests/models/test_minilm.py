"""`minilm` is all-MiniLM-L6-v2 as sentence-transformers runs it."""

import numpy as np
import pytest

from pyserini_repbert import catalog
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.models.checkpoints.checkpoint import _warn
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.systems.encoders import document_encoder

TEXTS = [
    'why do tomatoes split',
    '',
    'Sün ☃ Größe, naïve café',
    'a question of many words about slugs, lettuce, copper tape and rain ' * 3,
    'watering evenly keeps the fruit whole ' * 60,
]


@pytest.fixture(scope='module')
def theirs():
    sentence_transformers = pytest.importorskip('sentence_transformers')
    folder = catalog.package_folder(catalog.get('encoders', 'minilm'))
    return sentence_transformers.SentenceTransformer(
        str(folder), device='cpu', local_files_only=True
    )


def test_vectors_are_those_of_sentence_transformers(theirs):
    expected = theirs.encode(TEXTS)
    queries = RepBertQueryEncoder('minilm')
    passages = RepBertDocumentEncoder('minilm')
    np.testing.assert_allclose(passages.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(queries.encode_batch(TEXTS), expected, atol=1e-5)
    assert queries.limit + 2 == passages.limit + 2 == theirs.max_seq_length
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)


def test_its_folder_gives_the_same_vectors_by_the_same_engine():
    folder = catalog.package_folder(catalog.get('encoders', 'minilm'))
    passages = document_encoder(folder)
    assert passages.engine == OWN_ENGINE
    expected = RepBertDocumentEncoder('minilm').encode(TEXTS)
    np.testing.assert_allclose(passages.encode(TEXTS), expected, atol=1e-6)


def test_minilm_dot_is_another_encoder_and_warns_once(caplog):
    _warn.cache_clear()
    with caplog.at_level('WARNING'):
        dot = RepBertQueryEncoder('minilm-dot')
        RepBertDocumentEncoder('minilm-dot')
    assert caplog.text.count('minilm is the model as published') == 1
    minilm = RepBertQueryEncoder('minilm')
    assert (dot.limit, dot.pooling, minilm.pooling) == (20, 'mean', 'mean+normalised')
    assert (
        dot.weights_sha256
        != minilm.weights_sha256
        == RepBertDocumentEncoder('minilm').weights_sha256
    )
    assert np.linalg.norm(dot.encode('why do tomatoes split')) > 2

"""RepBERT's encoders against RepBERT-Index's."""

import json
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.models.tokenizer import WordPieceTokenizer

HERE = Path(__file__).parent
pytestmark = pytest.mark.parity


@pytest.fixture(scope='module')
def inputs():
    return json.loads((HERE / 'repbert' / 'inputs.json').read_text(encoding='utf-8'))


@pytest.mark.parametrize('weights', ['tiny', 'minilm-dot'])
def test_embeddings_and_scores_equal_the_originals(weights, inputs, checkpoint_folder):
    name = checkpoint_folder('repbert') if weights == 'tiny' else 'minilm-dot'
    golden = np.load(
        HERE / 'repbert' / ('golden.npz' if weights == 'tiny' else 'golden_minilm.npz')
    )
    queries = RepBertQueryEncoder(name).encode_batch([query['text'] for query in inputs['queries']])
    passages = RepBertDocumentEncoder(name).encode(
        [passage['text'] for passage in inputs['passages']]
    )
    assert queries.dtype == passages.dtype == np.float32
    np.testing.assert_allclose(queries, golden['query_embeddings'], atol=1e-4)
    np.testing.assert_allclose(passages, golden['doc_embeddings'], atol=1e-4)
    np.testing.assert_allclose(queries @ passages.T, golden['scores'], atol=1e-4, rtol=1e-4)


def test_token_ids_equal_the_originals(inputs, checkpoint_folder):
    tokenizer = WordPieceTokenizer.from_folder(checkpoint_folder('repbert'))
    for texts, limit, token_type in ((inputs['queries'], 20, 0), (inputs['passages'], 256, 1)):
        sequences = tokenizer.single([text['text'] for text in texts], limit, token_type)
        for ids, text in zip(
            np.split(sequences.input_ids, sequences.starts[1:]), texts, strict=True
        ):
            assert ids.tolist() == text['input_ids'], text['id']
            assert text['token_type'] == token_type
        assert set(sequences.token_type_ids) == {token_type}


@pytest.mark.parametrize('source', ['tokenizer.json', 'vocab.txt'])
def test_wordpieces_equal_those_of_hugging_face(source, checkpoint_folder):
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

    folder = open_checkpoint('minilm').folder
    tokenizer = (
        WordPieceTokenizer.from_folder(folder)
        if source == 'tokenizer.json'
        else WordPieceTokenizer.from_vocabulary(folder / source)
    )
    texts = json.loads((HERE / 'tokenization' / 'golden.json').read_text(encoding='utf-8'))['texts']
    assert tokenizer.ids([text['text'] for text in texts]) == [text['ids'] for text in texts]
    assert tokenizer.tokens(texts[1]['ids']) == texts[1]['tokens']

import json

import numpy as np
import pytest
import torch

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.repbert.network import RepBert


def test_a_vector_does_not_depend_on_its_batch(tiny_checkpoint, corpus_file):
    texts = [passage.text for passage in open_corpus(corpus_file(60))] + ['', 'cat ' * 40]
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    for budget in (16, 100, 100000):
        np.testing.assert_allclose(encoder.embed(texts, token_budget=budget), alone, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(texts[::-1])[::-1], alone, atol=1e-5)


def test_truncation_counts_wordpieces_without_special_tokens(tiny_checkpoint):
    folder = tiny_checkpoint()
    passage = RepBertDocumentEncoder(folder)
    query = RepBertQueryEncoder(folder)
    np.testing.assert_array_equal(passage.encode(['cat ' * 16]), passage.encode(['cat ' * 17]))
    assert abs(passage.encode(['cat ' * 15]) - passage.encode(['cat ' * 16])).max() > 1e-4
    np.testing.assert_array_equal(query.encode('cat ' * 8), query.encode('cat ' * 9))
    np.testing.assert_array_equal(
        passage.encode(['cat ' * 16], max_length=3), passage.encode(['cat cat cat'])
    )
    assert RepBertDocumentEncoder(folder, max_length=5).limit == 5


def test_pyserinis_contract(tiny_checkpoint):
    folder = str(tiny_checkpoint())
    query = RepBertQueryEncoder(
        encoder_dir=folder, tokenizer_name=None, device='cpu', prefix=None, fp16=False
    )
    assert query.encode('cat').shape == (16,) and query.encode('cat').dtype == np.float32
    assert query.encode_batch(['cat', 'dog', 'cat']).shape == (3, 16)
    assert query.encode_batch([]).shape == (0, 16)
    documents = RepBertDocumentEncoder(model_name=folder, device='cpu')
    titled = documents.encode(
        ['sat on the mat'], ['the cat'], fp16=False, max_length=16, add_sep=False
    )
    np.testing.assert_array_equal(titled, documents.encode(['the cat sat on the mat']))
    np.testing.assert_array_equal(documents.encode('cat'), documents.encode(['cat']))


def test_two_encoders_of_a_checkpoint_share_its_network(tiny_checkpoint):
    folder = tiny_checkpoint()
    query = RepBertQueryEncoder(folder)
    passage = RepBertDocumentEncoder(folder, open_encoder=query)
    assert passage.model is query.model
    assert passage.weights_sha256 == query.weights_sha256
    text = 'the cat sat on the mat ' * 4
    expected = RepBertDocumentEncoder(folder).encode(text)
    np.testing.assert_array_equal(passage.encode(text), expected)
    assert abs(query.encode(text) - expected).max() > 1e-3
    assert RepBertQueryEncoder(folder, open_encoder=passage).model is query.model


def test_encoders_of_other_models_share_nothing(tiny_checkpoint):
    folder = tiny_checkpoint()
    query = RepBertQueryEncoder(folder)
    others = (
        RepBertDocumentEncoder(folder, open_encoder=None),
        RepBertDocumentEncoder(folder, precision='bfloat16', open_encoder=query),
        RepBertDocumentEncoder(tiny_checkpoint('other'), open_encoder=query),
    )
    assert all(other.model is not query.model for other in others)


def test_half_precision_stays_near(tiny_checkpoint):
    folder = tiny_checkpoint()
    exact = RepBertDocumentEncoder(folder).encode(['the cat sat'])
    for other in (
        RepBertDocumentEncoder(folder, precision='bfloat16').encode(['the cat sat']),
        RepBertDocumentEncoder(folder).encode(['the cat sat'], fp16=True),
    ):
        assert other.dtype == np.float32
        assert 0 < abs(other - exact).max() < 0.1


def test_the_model_learns_through_its_mean():
    """Gradients reach the embeddings through the masked mean, and padding gets none."""
    torch.manual_seed(0)
    sizes = {'num_hidden_layers': 1, 'intermediate_size': 16, 'max_position_embeddings': 8}
    model = RepBert(BertConfig(vocab_size=10, hidden_size=8, num_attention_heads=2, **sizes))
    ids = torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7]])
    mask = torch.tensor([[True, True, True, False], [True] * 4])
    model(ids, torch.zeros_like(ids), mask).sum().backward()
    gradient = model.bert.embeddings.word_embeddings.weight.grad
    assert (
        gradient is not None
        and gradient[1:8].abs().sum(1).min() > 0
        and gradient[8:].abs().sum() == 0
    )


def test_the_shortest_and_the_longest_text(tiny_checkpoint):
    """A text may have all positions but those of [CLS] and [SEP]."""
    folder = tiny_checkpoint()
    positions = json.loads((folder / 'config.json').read_text())['max_position_embeddings']
    for length in (1, positions - 2):
        assert RepBertDocumentEncoder(folder, max_length=length).limit == length
    for length in (0, positions - 1):
        with pytest.raises(InputError, match=f'expected 1 to {positions - 2} wordpieces'):
            RepBertDocumentEncoder(folder, max_length=length)

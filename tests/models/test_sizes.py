"""A model's files may not ask for more than its weights have, whoever builds the model."""

import json

import pytest
import sentence_folders
import torch

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.weights import UNIT_LAYER, with_unit_layer
from pyserini_repbert.systems.sentence_transformers import loading
from pyserini_repbert.systems.sentence_transformers.sizes import check_sizes


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A bi-encoder with a dense layer."""
    return sentence_folders.write_bi_encoder(
        tmp_path_factory.mktemp('models') / 'bi',
        layers=[(16, 8, 'torch.nn.modules.activation.Tanh')],
    )


@pytest.fixture
def change(folder):
    """change(file, **values): files are as they were after the test."""
    before = {}

    def write(file, **values):
        path = folder / file
        before.setdefault(path, path.read_text(encoding='utf-8'))
        path.write_text(json.dumps(json.loads(before[path]) | values), encoding='utf-8')

    yield write
    for path, text in before.items():
        path.write_text(text, encoding='utf-8')


def test_a_model_as_it_was_saved(folder):
    check_sizes(folder)


@pytest.mark.parametrize(
    ('file', 'values'),
    [
        ('config.json', {'num_hidden_layers': 10**8}),
        ('config.json', {'num_hidden_layers': 1e8}),
        ('config.json', {'hidden_size': 10**6}),
        ('config.json', {'vocab_size': 10**9}),
        ('config.json', {'text_config': {'n_layer': 10**8}}),
        ('config.json', {'d_model': 10**400}),
        ('2_Dense/config.json', {'out_features': 10**8}),
        ('1_Pooling/config.json', {'word_embedding_dimension': 10**8}),
    ],
)
def test_more_than_the_weights_have_is_refused(file, values, folder, change):
    change(file, **values)
    with pytest.raises(DamagedFileError, match=rf'{file} has \w+ \d+, and its weights are'):
        check_sizes(folder)


def test_the_package_is_not_asked_for_such_a_model(folder, change, monkeypatch):
    pytest.importorskip('sentence_transformers')
    monkeypatch.setattr('sentence_transformers.SentenceTransformer', None)
    change('config.json', num_hidden_layers=10**8)
    with pytest.raises(DamagedFileError, match='num_hidden_layers 100000000'):
        loading.open_model('SentenceTransformer', folder, 'cpu', loading.Precision.FLOAT32)


def test_a_unit_layer_has_the_size_of_its_base():
    config = {UNIT_LAYER: True, 'hidden_size': 2**20, 'num_attention_heads': 1}
    with pytest.raises(DamagedFileError, match='hidden_size of 1048576'):
        with_unit_layer({'bert.embeddings.word_embeddings.weight': torch.zeros(3, 16)}, config)

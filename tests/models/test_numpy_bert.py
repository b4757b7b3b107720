"""The network in NumPy, and when it is used; the oracle is the network in PyTorch."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import TINY
from sentence_folders import TEXTS, write_bi_encoder

from pyserini_repbert.encode import text_network
from pyserini_repbert.models import bert, bert_config, numpy_bert, pooling
from pyserini_repbert.models.checkpoints.weights import read_arrays
from pyserini_repbert.systems.encoders import document_encoder, query_encoder
from pyserini_repbert.systems.sentence_transformers import layers, network

CLOSE = {'rtol': 1e-5, 'atol': 1e-5}


@pytest.fixture
def without_pytorch(monkeypatch):
    """A function that sets whether PyTorch counts as imported."""

    def set_absent(is_absent):
        monkeypatch.setattr(
            text_network,
            'needs_pytorch',
            lambda n_texts: not is_absent or n_texts > text_network.MOST_IN_NUMPY,
        )

    return set_absent


def check_both(open_encoder, without_pytorch, texts=TEXTS):
    """Both networks give the same vectors; returns the encoder that has used NumPy."""
    without_pytorch(False)
    expected = open_encoder().embed(texts)
    without_pytorch(True)
    encoder = open_encoder()
    assert np.allclose(encoder.embed(texts), expected, **CLOSE)
    return encoder


def uses_numpy(encoder):
    """Whether PyTorch's network was not made."""
    engine = getattr(encoder, '_engine', None)
    networks = encoder._networks if engine is None else engine._networks
    return 'forward' not in vars(networks)


@pytest.mark.parametrize('name', ['repbert-demo', 'minilm'])
@pytest.mark.parametrize('open_encoder', [query_encoder, document_encoder])
def test_checkpoints_of_the_catalog(name, open_encoder, without_pytorch):
    assert uses_numpy(check_both(lambda: open_encoder(name), without_pytorch))


@pytest.mark.parametrize('activation', sorted(bert_config.ACTIVATIONS))
def test_random_configurations(activation, tiny_checkpoint, without_pytorch):
    for seed in range(3):
        config = {
            'hidden_act': activation,
            'num_hidden_layers': 1 + seed,
            'num_attention_heads': 2**seed,
            'layer_norm_eps': 10.0 ** -(5 + seed),
        }
        folder = tiny_checkpoint(name=f'{activation}{seed}', seed=seed, **config)
        texts = ['the cat sat', '', 'red moon on the old tree, running']
        assert uses_numpy(check_both(partial(query_encoder, str(folder)), without_pytorch, texts))


@pytest.mark.parametrize('kind', ['bert', 'roberta', 'xlm-roberta'])
@pytest.mark.parametrize('mode', sorted(numpy_bert.POOLINGS))
def test_folders_of_sentence_transformers(kind, mode, tmp_path, without_pytorch):
    settings = {'similarity_fn_name': 'cosine', 'truncate_dim': 7}
    folder = write_bi_encoder(
        tmp_path / 'model', kind, pooling={'pooling_mode': [mode]}, settings=settings
    )
    assert uses_numpy(check_both(lambda: query_encoder(str(folder)), without_pytorch))


def test_what_numpy_does_not_compute_is_left_to_pytorch(tmp_path, without_pytorch):
    dense = write_bi_encoder(tmp_path / 'dense', layers=[(16, 12, 'activation.Tanh')])
    assert not uses_numpy(check_both(lambda: query_encoder(str(dense)), without_pytorch))
    assert not uses_numpy(
        check_both(lambda: query_encoder('minilm', precision='bfloat16'), without_pytorch, ['a'])
    )


def test_many_texts_are_left_to_pytorch(without_pytorch):
    without_pytorch(True)
    encoder = query_encoder('minilm')
    for _ in range(text_network.MOST_IN_NUMPY):
        encoder.encode('a question')
    assert uses_numpy(encoder)
    encoder.encode('one more')
    assert not uses_numpy(encoder)


def test_names_are_those_of_pytorch():
    assert set(numpy_bert.POOLINGS) == set(pooling.POOLINGS)
    assert set(numpy_bert.ACTIVATIONS) == set(bert.ACTIVATIONS) == set(bert_config.ACTIVATIONS)
    assert set(layers.ACTIVATION_NAMES) == set(network.ACTIVATIONS)
    config = bert_config.BertConfig.from_dict(TINY)
    expected = {name: tuple(value.shape) for name, value in bert.Bert(config).state_dict().items()}
    shapes = numpy_bert.body_shapes(config)
    assert {name.removeprefix('bert.'): shape for name, shape in shapes.items()} == expected


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_arrays_of_a_file_are_its_tensors(dtype, tmp_path):
    from safetensors.torch import save_file

    tensor = torch.arange(12).reshape(3, 4).to(dtype) / 7
    save_file({'a': tensor, 'none': tensor[:0], 'ids': torch.arange(3)}, tmp_path / 'w.safetensors')
    arrays = read_arrays(Path(tmp_path / 'w.safetensors'))
    assert set(arrays) == {'a', 'none'}
    assert arrays['a'].dtype == np.float32
    assert np.array_equal(arrays['a'], tensor.float().numpy())


def test_a_damaged_checkpoint_is_refused_when_it_is_opened(tiny_checkpoint, without_pytorch):
    from safetensors.torch import load_file, save_file

    from pyserini_repbert.errors import DamagedFileError

    folder = tiny_checkpoint()
    weights = load_file(folder / 'model.safetensors')
    weights.pop('bert.embeddings.LayerNorm.weight')
    save_file(weights, folder / 'model.safetensors')
    without_pytorch(True)
    with pytest.raises(DamagedFileError, match='missing: bert.embeddings.LayerNorm.weight'):
        query_encoder(str(folder))

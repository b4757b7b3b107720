"""This package's engine on folders of sentence-transformers; the oracle is that package."""

import json
import random

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sentence_folders import (
    OURS,
    TEXTS,
    THEIRS,
    check_vectors,
    write_bi_encoder,
    write_json,
)

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.tokenizer import share_workers
from pyserini_repbert.systems.encoders import document_encoder, query_encoder

KINDS = ['bert', 'roberta', 'xlm-roberta']
ACTIVATIONS = ['activation.Tanh', 'linear.Identity', 'activation.GELU', 'activation.ReLU']


def _random_settings(seed):
    """The arguments of `write_bi_encoder`."""
    chance = random.Random(seed)
    modes = ['cls', 'max', 'mean', 'mean_sqrt_len_tokens']
    chosen = chance.sample(modes, chance.choice([1, 1, 1, 2]))
    if chance.random() < 0.5:
        pooling = {'pooling_mode': chosen}
    else:
        keys = {'mean_sqrt_len_tokens': 'mean_sqrt_len_tokens', 'cls': 'cls_token'}
        early = [f'pooling_mode_{keys.get(mode, f"{mode}_tokens")}' for mode in chosen]
        pooling = dict.fromkeys(early, True)
    layers = []
    if chance.random() < 0.6:
        layers.append((16 * len(chosen), 12, chance.choice(ACTIVATIONS)))
    if chance.random() < 0.5:
        layers.append('normalize')
    prompts = {'query': 'the cat: ', 'document': 'on ', 'passage': 'dog '}
    settings = {'similarity_fn_name': chance.choice(['cosine', 'dot', None])}
    names = chance.sample(sorted(prompts), chance.randint(0, 3))
    settings['prompts'] = {name: prompts[name] for name in names}
    if names and chance.random() < 0.5:
        settings['default_prompt_name'] = names[0]
    body = {'do_lower_case': chance.random() < 0.3}
    if chance.random() < 0.6:
        body['max_seq_length'] = chance.randint(3, 40)
    return {'pooling': pooling, 'layers': layers, 'settings': settings, 'body': body}


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('kind', KINDS)
def test_vectors_of_random_folders_are_theirs(kind, seed, tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', kind, **_random_settings(f'{kind} {seed}'))
    check_vectors(folder)


@pytest.mark.parametrize(
    ('file', 'change'),
    [
        ('1_Pooling/config.json', {'pooling_mode': 'lasttoken'}),
        ('1_Pooling/config.json', {'include_prompt': False}),
        ('tokenizer_config.json', {'padding_side': 'left'}),
        ('tokenizer_config.json', {'truncation_side': 'left'}),
        ('config.json', {'is_decoder': True}),
        ('config.json', {'hidden_act': 'silu'}),
        ('2_Dense/config.json', {'activation_function': 'torch.nn.modules.activation.ELU'}),
        ('2_Dense/config.json', {'use_residual': True}),
    ],
)
def test_what_the_engine_does_not_know_is_left_to_them(file, change, tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', layers=[(16, 16, 'activation.Tanh')])
    path = folder / file
    write_json(path, json.loads(path.read_text()) | change)
    check_vectors(folder, THEIRS)


@pytest.mark.parametrize(('similarity', 'is_unit'), [('cosine', True), ('dot', False)])
def test_a_folder_may_keep_the_first_values_of_vectors(similarity, is_unit, tmp_path):
    settings = {'truncate_dim': 5, 'similarity_fn_name': similarity}
    folder = write_bi_encoder(tmp_path / 'model', layers=['normalize'], settings=settings)
    check_vectors(folder)
    encoder = document_encoder(folder)
    assert (encoder.dimension, encoder.unit_length) == (5, is_unit)


def test_a_truncation_longer_than_the_vectors_changes_nothing(tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', settings={'truncate_dim': 99})
    check_vectors(folder)
    assert document_encoder(folder).dimension == 16


def test_an_impossible_truncation_is_left_to_them(tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', settings={'truncate_dim': -2})
    check_vectors(folder, THEIRS)


@pytest.mark.parametrize('kept', ['6', 6.0, 0, True])
def test_what_is_no_number_of_values_is_refused(kept, tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', settings={'truncate_dim': kept})
    with pytest.raises(InputError, match=f'have truncate_dim {kept!r}, where an integer'):
        document_encoder(folder)


def test_a_missing_weight_is_an_error(tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', 'roberta')
    tensors = load_file(folder / 'model.safetensors')
    del tensors['encoder.layer.1.output.dense.bias']
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    with pytest.raises(DamagedFileError, match='missing: bert.encoder.layer.1.output.dense.bias'):
        query_encoder(folder)


@pytest.mark.parametrize('kind', ['bert', 'roberta'])
def test_names_of_weights_may_have_the_bodys_prefix(kind, tmp_path):
    folder = write_bi_encoder(tmp_path / 'model', kind)
    expected = document_encoder(folder).encode(TEXTS)
    tensors = load_file(folder / 'model.safetensors')
    renamed = {f'{kind}.{name}': value for name, value in tensors.items()}
    renamed['lm_head.bias'] = tensors['embeddings.LayerNorm.bias'].clone()
    save_file(renamed, folder / 'model.safetensors', metadata={'format': 'pt'})
    assert np.array_equal(document_encoder(folder).encode(TEXTS), expected)


def test_bfloat16_changes_vectors_a_little(tmp_path):
    layers = [(16, 12, 'activation.Tanh'), 'normalize']
    folder = write_bi_encoder(tmp_path / 'model', 'xlm-roberta', layers=layers)
    expected = document_encoder(folder).encode(TEXTS)
    vectors = document_encoder(folder, precision='bfloat16').encode(TEXTS)
    assert 0 < np.abs(vectors - expected).max() < 0.1


def test_a_vocabulary_is_enough_for_bert(tmp_path):
    folder = write_bi_encoder(tmp_path / 'model')
    vocabulary = json.loads((folder / 'tokenizer.json').read_text())['model']['vocab']
    (folder / 'vocab.txt').write_text('\n'.join(vocabulary) + '\n')
    expected = document_encoder(folder).encode(TEXTS)
    (folder / 'tokenizer.json').unlink()
    encoder = document_encoder(folder)
    assert encoder.engine == OURS and np.array_equal(encoder.encode(TEXTS), expected)


def test_worker_processes_read_the_prompt_too(tmp_path):
    from pyserini_repbert.data.passages import Passage
    from pyserini_repbert.encode.dense import dense_encoding
    from pyserini_repbert.encode.sharding import build_bundle
    from pyserini_repbert.index.dense import DenseBundle

    prompts = {'document': 'the cat on '}
    folder = write_bi_encoder(tmp_path / 'model', settings={'prompts': prompts})
    encoder = document_encoder(folder)
    expected = encoder.encode(TEXTS)
    share_workers([encoder.tokenizer], 1)
    passages = [Passage(f'd{number}', text) for number, text in enumerate(TEXTS)]
    build_bundle(passages, tmp_path / 'index', dense_encoding(encoder))
    vectors = DenseBundle(tmp_path / 'index').vectors(np.arange(len(TEXTS)))
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_the_record_says_which_engine_ran(tmp_path, corpus_file):
    for name, mode in (('own', 'mean'), ('theirs', 'lasttoken')):
        folder = write_bi_encoder(tmp_path / name, pooling={'pooling_mode': mode})
        output = tmp_path / f'{name}-index'
        words = ['--corpus', str(corpus_file(3)), '--encoder', str(folder), '--quiet']
        assert run(encode, [*words, '--output', str(output)]) == 0
        record = json.loads((tmp_path / f'{name}-index.record.json').read_text())
        assert record['models'][0]['engine'] == {'own': OURS, 'theirs': THEIRS}[name]

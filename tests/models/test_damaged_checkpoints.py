"""Checkpoints with a flipped bit or an altered config.json: refused in one line, before anything large is made."""

from __future__ import annotations

import json
import os
import random
import shutil

import numpy as np
import pytest

from pyserini_repbert.checksums import CHECKSUMS, write_checksums
from pyserini_repbert.encode import RepBertQueryEncoder
from pyserini_repbert.errors import DamagedFileError, InputError, PyseriniRepbertError
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.rerank import CedrReranker, EpicReranker, MonoBertReranker
from pyserini_repbert.rerank.sentence import is_cross_encoder

NOT_LOADED = ('README.md', 'log.csv', 'recipe.yaml')
SIZES = (
    'vocab_size', 'hidden_size', 'num_hidden_layers', 'num_attention_heads', 'intermediate_size',
    'max_position_embeddings', 'type_vocab_size',
)  # fmt: skip
OTHERS = ('hidden_act', 'layer_norm_eps', 'hidden_dropout_prob', 'pad_token_id', 'initializer_range', 'model_type')
WRONG = (
    0, -1, 1, 3, 17, 10**6, 2**31, 10**12, 10**30, 16.0, 0.5, -0.5, 1e400, float('nan'),
    True, False, '16', 'x', '', [], [16], {}, {'a': 1},
)  # fmt: skip


def make_folder(kind, tiny_checkpoint, tmp_path):
    """A checkpoint with what `train` puts into its folder; 'adapter' is one over a base with checksums."""
    base = tiny_checkpoint('base')
    (base / 'tokenizer_config.json').write_text('{"do_lower_case": true}\n')
    write_checksums(base)
    if kind == 'whole':
        folder = base
    else:
        from safetensors.torch import save_file

        folder = tmp_path / 'adapter'
        folder.mkdir()
        import torch

        stem = 'base_model.model.bert.encoder.layer.1.attention.self.query'
        tensors = {f'{stem}.lora_A.weight': torch.ones(2, 16), f'{stem}.lora_B.weight': torch.ones(16, 2)}
        save_file(tensors, folder / 'adapter_model.safetensors')
        settings = {'r': 2, 'lora_alpha': 4, 'base_model_name_or_path': str(base)}
        (folder / 'adapter_config.json').write_text(json.dumps(settings))
        shutil.copyfile(base / 'config.json', folder / 'config.json')
        write_checksums(folder)
    for name in NOT_LOADED:
        (folder / name).write_text(f'a {name}\n')
    return folder


def flips(size, draw, most):
    """(byte, bit) places: every byte of a small file, `most` of a large one."""
    places = range(size) if size <= most else sorted(draw.sample(range(size), most))
    return [(place, draw.randrange(8)) for place in places]


def damage(folder, most, seed=0):
    """How many flips were refused, and how many are harmless, in every file of a folder."""
    draw, refused, harmless = random.Random(seed), 0, 0
    expected = RepBertQueryEncoder(folder).encode('the cat sat')
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for place, bit in flips(len(whole), draw, most):
            raw = bytearray(whole)
            raw[place] ^= 1 << bit
            path.write_bytes(raw)
            if path.name in NOT_LOADED:
                if place == 0:
                    np.testing.assert_array_equal(RepBertQueryEncoder(folder).encode('the cat sat'), expected)
                open_checkpoint(folder)
                harmless += 1
                continue
            with pytest.raises(PyseriniRepbertError) as caught:
                open_checkpoint(folder)
            assert '\n' not in str(caught.value) and len(str(caught.value)) < 500
            refused += 1
        path.write_bytes(whole)
    np.testing.assert_array_equal(RepBertQueryEncoder(folder).encode('the cat sat'), expected)
    return refused, harmless


@pytest.mark.parametrize('kind', ['whole', 'adapter'])
def test_a_flipped_bit_is_refused(kind, tiny_checkpoint, tmp_path):
    refused, harmless = damage(make_folder(kind, tiny_checkpoint, tmp_path), 25)
    assert refused >= 25 * 4 and harmless > 30


def test_a_flip_behind_the_back_of_what_is_remembered(tiny_checkpoint, tmp_path):
    """Same size, and the time of its last change set back."""
    folder = make_folder('whole', tiny_checkpoint, tmp_path)
    path = folder / 'model.safetensors'
    long_ago = 1_600_000_000_000_000_000
    os.utime(path, ns=(long_ago, long_ago))
    open_checkpoint(folder)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(long_ago, long_ago))
    with pytest.raises(DamagedFileError, match=r'model.safetensors is damaged: .*If you changed it on purpose'):
        open_checkpoint(folder)
    (folder / CHECKSUMS).unlink()
    assert open_checkpoint(folder).config['hidden_size'] == 16


@pytest.fixture
def altered(tiny_checkpoint, tiny_cedr, tiny_epic):
    """altered(system, change) -> opens and uses the system's model with a changed config.json, without checksums."""
    folders = {
        'repbert': tiny_checkpoint('repbert'), 'cedr': tiny_cedr('pacrr'), 'epic': tiny_epic(),
    }  # fmt: skip
    openers = {'repbert': RepBertQueryEncoder, 'cedr': CedrReranker, 'epic': EpicReranker, 'monobert': MonoBertReranker}

    def run(system, change):
        path = folders[system] / 'config.json'
        whole = path.read_text()
        try:
            path.write_text(json.dumps(change(json.loads(whole))))
            model = openers[system](folders[system])
            if system == 'repbert':
                model.encode('the cat sat on the mat')
        finally:
            path.write_text(whole)

    return run


@pytest.mark.parametrize('name', SIZES)
def test_an_altered_size_is_refused(name, altered):
    """But for the number of heads, which no weights tell: 16 dimensions allow 1, 2, 4, 8 or 16 of them."""
    for value in WRONG:
        if (name, value) == ('num_attention_heads', 1) and value is not True:
            continue
        with pytest.raises((DamagedFileError, InputError)) as caught:
            altered('repbert', lambda config, value=value: config | {name: value})
        assert name.removeprefix('num_attention_') in str(caught.value) and '\n' not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize('system', ['repbert', 'cedr', 'epic'])
def test_other_values_of_wrong_types_are_refused_or_used(system, altered):
    """Those of config.json and those of its `ranking` object: never a traceback. Used: a hidden_dropout_prob of 0.5."""
    keys = ('system', 'max_query_length', 'max_doc_length', 'architecture', 'joint', 'pad_query', 'k_max', 'variant')
    refused = 0
    for value in WRONG:
        changes = [lambda config, name=name: config | {name: value} for name in (*SIZES, *OTHERS, 'ranking')]  # noqa: B023
        changes += [
            lambda config, name=name: config | {'ranking': config['ranking'] | {name: value}}  # noqa: B023
            for name in keys
        ]
        for change in changes:
            try:
                altered(system, change)
            except PyseriniRepbertError as error:
                assert '\n' not in str(error)
                refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('config.json', '['),
        ('config.json', '[' * 200_000),
        ('config.json', '3'),
        ('model.safetensors.index.json', '{'),
        ('model.safetensors.index.json', '{}'),
        ('model.safetensors.index.json', '{"weight_map": [1]}'),
        ('model.safetensors.index.json', '{"weight_map": {"a": ["b"]}}'),
        ('model.safetensors.index.json', '{"weight_map": {"a": "../b"}}'),
        ('adapter_config.json', '[' * 200_000),
        ('adapter_config.json', '{}'),
        ('adapter_config.json', '{"base_model_name_or_path": null}'),
        ('tokenizer_config.json', '[' * 200_000),
        ('tokenizer_config.json', '[]'),
    ],
)
def test_a_file_that_is_not_what_it_was_is_named(tiny_checkpoint, name, content):
    folder = tiny_checkpoint()
    (folder / CHECKSUMS).unlink(missing_ok=True)
    (folder / name).write_text(content)
    with pytest.raises(DamagedFileError, match=rf'{name}.* again$'):
        RepBertQueryEncoder(folder)


def test_labels_that_are_none_make_no_cross_encoder(cross_encoder_folder):
    folder = cross_encoder_folder(labels=1, ranking=None, id2label=5)
    assert not is_cross_encoder(open_checkpoint(folder))


def test_half_an_update_of_an_adapter_is_refused(tiny_checkpoint, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = make_folder('adapter', tiny_checkpoint, tmp_path)
    (folder / CHECKSUMS).unlink()
    tensors = load_file(folder / 'adapter_model.safetensors')
    for lost in list(tensors):
        save_file(
            {name: value for name, value in tensors.items() if name != lost}, folder / 'adapter_model.safetensors'
        )
        with pytest.raises(DamagedFileError, match='does not fit its base|has no lora_A beside it'):
            RepBertQueryEncoder(folder)


@pytest.mark.parametrize('kind', [RepBertQueryEncoder, MonoBertReranker])
def test_a_maximum_length_of_0_is_refused(tiny_checkpoint, kind, cross_encoder_folder):
    folder = cross_encoder_folder() if kind is MonoBertReranker else tiny_checkpoint()
    with pytest.raises(InputError, match='maximum length 0 was given'):
        kind(folder, max_length=0)

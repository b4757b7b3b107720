"""Checkpoints with a flipped bit or an altered config.json: refused in one line, before anything
large is made.
"""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from pyserini_repbert.checksums import CHECKSUMS, write_checksums
from pyserini_repbert.encode import RepBertQueryEncoder
from pyserini_repbert.errors import DamagedFileError, InputError, PyseriniRepbertError
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

NOT_LOADED = ('README.md', 'log.csv', 'recipe.yaml')


def make_folder(kind, tiny_checkpoint, tmp_path):
    """A checkpoint with what `train` puts into its folder; 'adapter' is one over a base with
    checksums.
    """
    base = tiny_checkpoint('base')
    (base / 'tokenizer_config.json').write_text('{"do_lower_case": true}\n')
    write_checksums(base)
    if kind == 'whole':
        folder = base
    else:
        folder = tmp_path / 'adapter'
        folder.mkdir()
        stem = 'base_model.model.bert.encoder.layer.1.attention.self.query'
        tensors = {
            f'{stem}.lora_A.weight': torch.ones(2, 16),
            f'{stem}.lora_B.weight': torch.ones(16, 2),
        }
        save_file(tensors, folder / 'adapter_model.safetensors')
        settings = {'r': 2, 'lora_alpha': 4, 'base_model_name_or_path': str(base)}
        (folder / 'adapter_config.json').write_text(json.dumps(settings))
        shutil.copyfile(base / 'config.json', folder / 'config.json')
        write_checksums(folder)
    for name in NOT_LOADED:
        (folder / name).write_text(f'a {name}\n')
    return folder


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
    with pytest.raises(DamagedFileError, match=r'model.safetensors is damaged'):
        open_checkpoint(folder)
    (folder / CHECKSUMS).unlink()
    assert open_checkpoint(folder).config['hidden_size'] == 16


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('config.json', '[' * 200_000),
        ('model.safetensors.index.json', '{}'),
        ('model.safetensors.index.json', '{"weight_map": {"a": ["b"]}}'),
        ('model.safetensors.index.json', '{"weight_map": {"a": "../secret/model.safetensors"}}'),
        ('model.safetensors.index.json', '{"weight_map": {"a": "/secret.safetensors"}}'),
        ('adapter_config.json', '{}'),
        ('adapter_config.json', '{"base_model_name_or_path": null}'),
        ('tokenizer_config.json', '[' * 200_000),
    ],
)
def test_a_file_that_is_not_what_it_was_is_named(tiny_checkpoint, name, content):
    folder = tiny_checkpoint()
    (folder / CHECKSUMS).unlink(missing_ok=True)
    (folder / name).write_text(content)
    with pytest.raises(DamagedFileError, match=rf'{name}.* again$'):
        RepBertQueryEncoder(folder)


def test_half_an_update_of_an_adapter_is_refused(tiny_checkpoint, tmp_path):
    folder = make_folder('adapter', tiny_checkpoint, tmp_path)
    (folder / CHECKSUMS).unlink()
    tensors = load_file(folder / 'adapter_model.safetensors')
    for lost in list(tensors):
        save_file(
            {name: value for name, value in tensors.items() if name != lost},
            folder / 'adapter_model.safetensors',
        )
        with pytest.raises(DamagedFileError, match='does not fit its base|has no lora_A beside it'):
            RepBertQueryEncoder(folder)


@pytest.mark.parametrize('kind', ['whole', 'adapter'])
def test_a_flipped_bit_in_any_file_is_refused(kind, tiny_checkpoint, tmp_path):
    folder = make_folder(kind, tiny_checkpoint, tmp_path)
    loaded = [path for path in sorted(folder.iterdir()) if path.name not in NOT_LOADED]
    assert len(loaded) >= 4
    for path in loaded:
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(PyseriniRepbertError):
                open_checkpoint(folder)
        path.write_bytes(whole)
    for name in NOT_LOADED:
        (folder / name).write_text('changed')
    open_checkpoint(folder)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('vocab_size', '16'),
        ('hidden_size', 0),
        ('num_hidden_layers', 10**12),
        ('num_attention_heads', 3),
        ('intermediate_size', 0.5),
        ('max_position_embeddings', [16]),
        ('type_vocab_size', True),
    ],
)
def test_an_altered_size_is_refused(tiny_checkpoint, name, value):
    folder = tiny_checkpoint()
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps(config | {name: value}))
    with pytest.raises((DamagedFileError, InputError), match=name.removeprefix('num_attention_')):
        RepBertQueryEncoder(folder)

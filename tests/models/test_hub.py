import json

import pytest
import torch
from huggingface_hub import HfApi
from safetensors.torch import load_file

from pyserini_repbert.errors import DamagedFileError, MissingResourceError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.models.checkpoints.hub import upload_checkpoint


def test_offline_the_address_and_size_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_CACHE', str(tmp_path))
    address = 'https://huggingface.co/castorini/monobert-large-msmarco'
    with pytest.raises(
        MissingResourceError,
        match=rf"'monobert-large' \(1.3 GB\) .* {address} \(downloads are off\)",
    ):
        open_checkpoint('monobert-large', 'rerankers')


@pytest.mark.parametrize('name', ['config.json', 'model.safetensors'])
def test_a_hubs_folder_without_config_or_weights_is_refused(
    name, tmp_path, monkeypatch, tiny_checkpoint
):
    folder = tiny_checkpoint('snapshot')
    (folder / name).unlink()
    (folder / 'vocab.txt').unlink()
    monkeypatch.setattr('huggingface_hub.snapshot_download', lambda *_, **__: str(folder))
    message = 'snapshot holds no config.json with model.safetensors or pytorch_model.bin'
    with pytest.raises(DamagedFileError, match=message):
        open_checkpoint('monobert-large', 'rerankers')


def test_the_hubs_folder_is_used_and_older_weights_become_safetensors(
    tmp_path, monkeypatch, tiny_checkpoint
):
    folder = tiny_checkpoint('snapshot')
    asked = []

    def snapshot_download(repository, allow_patterns, **_):
        asked.append((repository, allow_patterns[-1]))
        return str(folder)

    monkeypatch.setattr('huggingface_hub.snapshot_download', snapshot_download)
    assert open_checkpoint('monobert-large', 'rerankers').folder == folder
    tensors = load_file(folder / 'model.safetensors')
    torch.save(
        {**tensors, 'bert.embeddings.position_ids': torch.arange(3)}, folder / 'pytorch_model.bin'
    )
    (folder / 'model.safetensors').unlink()
    config = json.loads((folder / 'config.json').read_text())
    del config['ranking']
    (folder / 'config.json').write_text(json.dumps(config))
    checkpoint = open_checkpoint('monobert-large', 'rerankers')
    assert checkpoint.folder == cache_folder() / 'checkpoints' / 'monobert-large'
    assert checkpoint.system('monobert')['max_query_length'] == 64
    assert checkpoint.tensors().keys() == tensors.keys()
    assert asked[1:] == [
        ('castorini/monobert-large-msmarco', 'model.safetensors'),
        ('castorini/monobert-large-msmarco', 'pytorch_model.bin'),
    ]
    before = len(asked)
    open_checkpoint('monobert-large', 'rerankers')
    assert len(asked) == before


def test_a_checkpoint_folder_is_uploaded_as_it_is(tiny_checkpoint, monkeypatch):
    calls = []
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setattr(
        HfApi, 'create_repo', lambda self, name, **given: calls.append((name, given)) or 'address'
    )
    monkeypatch.setattr(HfApi, 'upload_folder', lambda self, **given: calls.append(given))
    folder = tiny_checkpoint()
    assert upload_checkpoint(open_checkpoint(folder), 'me/tiny', private=True) == 'address'
    assert calls == [
        ('me/tiny', {'private': True, 'exist_ok': True}),
        {'repo_id': 'me/tiny', 'folder_path': str(folder)},
    ]

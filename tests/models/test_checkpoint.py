import json
import os
import pickle
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

from pyserini_repbert import checksums
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.systems.repbert.conversion import convert_repbert


def _change(folder, **changes):
    tensors = load_file(folder / 'model.safetensors')
    for name, value in changes.items():
        if value is None:
            del tensors[name.replace('__', '.')]
        else:
            tensors[name.replace('__', '.')] = value
    save_file(tensors, folder / 'model.safetensors')


def test_a_missing_tensor_is_an_error(tiny_checkpoint):
    folder = tiny_checkpoint()
    _change(folder, bert__encoder__layer__1__output__dense__bias=None)
    with pytest.raises(DamagedFileError, match='missing: bert.encoder.layer.1.output.dense.bias'):
        RepBertQueryEncoder(folder)


def test_weights_are_read_for_their_checksum_after_a_change(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'cache'))
    # Else a file that was written a moment ago is read again.
    monkeypatch.setattr(checksums, '_TICK', -1)
    folder = tiny_checkpoint()
    read = []

    def digest(path, algorithm='sha256'):
        read.append(path)
        return read_digest(path, algorithm)

    read_digest = checksums.digest
    monkeypatch.setattr(checksums, 'digest', digest)
    first = open_checkpoint(folder).weights_sha256
    assert open_checkpoint(folder).weights_sha256 == first
    assert read == [folder / 'model.safetensors']
    _change(folder, bert__embeddings__LayerNorm__bias=torch.ones(16))
    assert open_checkpoint(folder).weights_sha256 != first


def test_an_unused_pooler_may_be_there_in_its_shape(tiny_checkpoint):
    folder = tiny_checkpoint()
    _change(
        folder,
        bert__pooler__dense__weight=torch.zeros(16, 16),
        bert__pooler__dense__bias=torch.zeros(16),
    )
    assert RepBertQueryEncoder(folder).dimension == 16
    _change(folder, bert__pooler__dense__weight=torch.zeros(16, 17))
    with pytest.raises(
        DamagedFileError, match=r'bert.pooler.dense.weight \(16, 17\) instead of \(16, 16\)'
    ):
        RepBertQueryEncoder(folder)


def test_weights_without_the_prefix_are_the_body(tiny_checkpoint):
    folder = tiny_checkpoint()
    expected = RepBertQueryEncoder(folder).encode('the cat sat')
    tensors = load_file(folder / 'model.safetensors')
    save_file(
        {name.removeprefix('bert.'): value for name, value in tensors.items()},
        folder / 'model.safetensors',
    )
    assert (RepBertQueryEncoder(folder).encode('the cat sat') == expected).all()


def test_weights_in_several_files_of_several_types_are_one_model(tiny_checkpoint):
    folder = tiny_checkpoint()
    expected = RepBertQueryEncoder(folder).encode('cat')
    tensors = load_file(folder / 'model.safetensors')
    (folder / 'model.safetensors').unlink()
    files = {
        name: f'model-{n % 2 + 1:05d}-of-00002.safetensors'
        for n, name in enumerate(sorted(tensors))
    }
    for file, dtype in zip(
        sorted(set(files.values())), (torch.float64, torch.float32), strict=True
    ):
        save_file(
            {name: tensors[name].to(dtype) for name in tensors if files[name] == file},
            folder / file,
        )
    (folder / 'model.safetensors.index.json').write_text(json.dumps({'weight_map': files}))
    assert (RepBertQueryEncoder(folder).encode('cat') == expected).all()
    before = open_checkpoint(folder).weights_sha256
    save_file(
        {name: tensors[name] for name in tensors if files[name] == file},
        folder / file,
        {'format': 'pt'},
    )
    assert open_checkpoint(folder).weights_sha256 != before
    (folder / file).unlink()
    with pytest.raises(InputError, match=f'has no {file}'):
        RepBertQueryEncoder(folder)


@pytest.mark.parametrize('name', ['model.safetensors', 'config.json', 'vocab.txt'])
def test_a_folder_that_lacks_a_file_is_no_checkpoint(tiny_checkpoint, name):
    folder = tiny_checkpoint()
    (folder / name).unlink()
    with pytest.raises(InputError):
        RepBertQueryEncoder(folder)


def test_a_checkpoint_of_another_system_is_refused(tiny_checkpoint):
    folder = tiny_checkpoint(ranking={'system': 'epic'})
    with pytest.raises(MismatchError, match="system 'epic', 'repbert' was expected"):
        RepBertQueryEncoder(folder)


def test_a_lora_adapter_is_merged_as_peft_merges_it(tiny_checkpoint, tmp_path):
    """The reference is PEFT itself, on Hugging Face's BERT."""
    from peft import LoraConfig, get_peft_model
    from transformers import BertModel

    base = tiny_checkpoint('base')
    theirs = get_peft_model(
        BertModel.from_pretrained(base, add_pooling_layer=False),
        LoraConfig(r=2, lora_alpha=6, target_modules=['query', 'dense'], init_lora_weights=False),
    )
    adapter = tmp_path / 'adapter'
    theirs.save_pretrained(adapter)
    renamed = {
        name.replace('base_model.model.', 'base_model.model.bert.'): value
        for name, value in load_file(adapter / 'adapter_model.safetensors').items()
    }
    save_file(renamed, adapter / 'adapter_model.safetensors')
    settings = json.loads((adapter / 'adapter_config.json').read_text())
    settings['base_model_name_or_path'] = str(base)
    (adapter / 'adapter_config.json').write_text(json.dumps(settings))
    (adapter / 'config.json').write_text((base / 'config.json').read_text())
    merged = theirs.merge_and_unload().state_dict()
    ours = open_checkpoint(adapter)
    for name, value in ours.tensors().items():
        torch.testing.assert_close(value, merged[name.removeprefix('bert.')])
    assert ours.weights_sha256 != open_checkpoint(base).weights_sha256
    changed = RepBertQueryEncoder(adapter).encode('the cat')
    assert abs(changed - RepBertQueryEncoder(base).encode('the cat')).max() > 1e-3


def test_converting_a_published_archive_gives_the_same_vectors(tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint()
    state = load_file(folder / 'model.safetensors')
    state |= {
        'bert.embeddings.position_ids': torch.arange(64)[None],
        'bert.pooler.dense.weight': torch.zeros(16, 16),
    }
    state |= {'bert.pooler.dense.bias': torch.zeros(16)}
    torch.save(state, tmp_path / 'pytorch_model.bin')
    with zipfile.ZipFile(tmp_path / 'published.zip', 'w') as archive:
        archive.write(tmp_path / 'pytorch_model.bin', 'ckpt-350000/pytorch_model.bin')
        archive.write(folder / 'config.json', 'ckpt-350000/config.json')
    ranking = {'system': 'repbert', 'max_query_length': 8, 'max_doc_length': 16}
    convert_repbert(
        tmp_path / 'published.zip', tmp_path / 'made', ranking, vocabulary=folder / 'vocab.txt'
    )
    texts = ['the cat sat on the mat', '']
    assert (
        RepBertDocumentEncoder(tmp_path / 'made').encode(texts)
        == RepBertDocumentEncoder(folder).encode(texts)
    ).all()
    assert Checkpoint.open(tmp_path / 'made').system('repbert') == ranking
    with pytest.raises(InputError, match='exists'):
        convert_repbert(tmp_path / 'published.zip', tmp_path / 'made', ranking)


def test_weights_that_would_run_code_are_refused(tiny_checkpoint, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, ('touch ' + str(tmp_path / 'run'),)

    folder = tiny_checkpoint()
    (folder / 'model.safetensors').unlink()
    (folder / 'pytorch_model.bin').write_bytes(pickle.dumps({'bert.x': Evil()}))
    with pytest.raises(DamagedFileError):
        convert_repbert(folder, tmp_path / 'made', {}, folder / 'vocab.txt')
    assert not (tmp_path / 'run').exists() and not (tmp_path / 'made').exists()

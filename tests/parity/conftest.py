"""Checkpoint folders made from the recorded weights."""

import json
import shutil
from pathlib import Path

import pytest

from pyserini_repbert import catalog

GOLDEN = Path(__file__).parent


@pytest.fixture
def checkpoint_folder(tmp_path):
    """make(system, head=None, config_updates={}, rename={}) -> a checkpoint folder of base weights
    and a head file.

    `config_updates` change config.json; `rename` maps names in the head file to names in the
    checkpoint, None drops.
    """

    def make(system, head=None, config_updates=None, rename=None):
        from safetensors.torch import load_file, save_file

        folder = tmp_path / f'{system}-{len(list(tmp_path.iterdir()))}'
        folder.mkdir()
        config = json.loads((GOLDEN / 'base' / 'config.json').read_text(encoding='utf-8'))
        config |= {'ranking': {'system': system}} | dict(config_updates or {})
        (folder / 'config.json').write_text(json.dumps(config), encoding='utf-8')
        tensors = {
            f'bert.{name}': value.float()
            for name, value in load_file(GOLDEN / 'base/weights.safetensors').items()
        }
        if head is not None:
            for name, value in load_file(head).items():
                target = (rename or {}).get(name, name)
                if target is not None:
                    tensors[target] = value.float()
        save_file(tensors, folder / 'model.safetensors')
        vocabulary = catalog.package_folder(catalog.get('encoders', 'minilm')) / 'vocab.txt'
        shutil.copyfile(vocabulary, folder / 'vocab.txt')
        return folder

    return make

import json
import pickle
from collections import OrderedDict

import pytest
import torch
from safetensors.torch import load_file

from pyserini_repbert.commands.command import run
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker

TOOL = 'convert_checkpoint'
CANDIDATES = [Candidate('a', text='the cat sat'), Candidate('b', text='a dog ran')]


def cedr(weights, base, output):
    return ['cedr', str(weights), str(output), '--base', str(base)]


@pytest.fixture
def published(tmp_path, tiny_cedr, tiny_checkpoint):
    """make(architecture, **settings) -> the model's folder, its weights.p, and the folder of the
    BERT it began with.

    Queries have 20 places, as in all published models; frozen is what the file leaves out.
    """
    base = tiny_checkpoint('base')

    def make(architecture, frozen=(), **settings):
        folder = tiny_cedr(architecture, seed=1, max_query_length=20, **settings)
        state = load_file(folder / 'model.safetensors')
        body = load_file(base / 'model.safetensors')
        saved = OrderedDict(
            (name, value) for name, value in state.items() if not name.startswith(tuple(frozen))
        )
        saved |= {
            'bert.pooler.dense.weight': torch.zeros(16, 16),
            'bert.pooler.dense.bias': torch.zeros(16),
        }
        if architecture in ('knrm', 'drmm'):
            saved |= {f'bert_ranker.{name}': value for name, value in body.items()}
            saved |= {
                'bert_ranker.cls.weight': torch.zeros(1, 16),
                'bert_ranker.cls.bias': torch.zeros(1),
            }
        path = tmp_path / 'weights.p'
        torch.save(saved, path)
        return folder, path, base

    return make


@pytest.mark.parametrize(
    ('architecture', 'settings', 'said'),
    [
        ('vanilla', {}, 'vanilla; 0 frozen'),
        ('knrm', {}, 'knrm; 0 frozen'),
        ('pacrr', {'k_max': 2}, 'pacrr, k_max 2; 0 frozen'),
        ('pacrr', {'k_max': 30}, 'pacrr, k_max 30; 0 frozen'),
        ('drmm', {}, 'drmm; 0 frozen'),
    ],
)
def test_weights_become_a_checkpoint(
    architecture, settings, said, main, published, tmp_path, capsys
):
    folder, weights, base = published(architecture, **settings)
    output = tmp_path / 'converted'
    assert run(main, cedr(weights, base, output)) == 0
    assert said in capsys.readouterr().out
    ranking = json.loads((output / 'config.json').read_text())['ranking']
    assert ranking['system'] == 'cedr' and ranking['architecture'] == architecture
    assert ranking['k_max'] == settings.get('k_max', 2) and ranking['joint'] is True
    assert not [
        name for name in load_file(output / 'model.safetensors') if name.startswith('bert_ranker')
    ]
    expected = CedrReranker(folder).rerank('cat sat', CANDIDATES)
    assert CedrReranker(output).rerank('cat sat', CANDIDATES) == expected


def test_frozen_parts_come_from_the_base(main, published, tmp_path, capsys):
    folder, weights, base = published('knrm', frozen=('bert.embeddings.', 'kernels.'))
    output = tmp_path / 'converted'
    assert run(main, cedr(weights, base, output)) == 0
    assert (
        '27 frozen tensors' in capsys.readouterr().out
    )  # 5 embedding tensors and 22 kernel values
    name = 'bert.embeddings.word_embeddings.weight'
    converted = load_file(output / 'model.safetensors')
    assert torch.equal(converted[name], load_file(base / 'model.safetensors')[name])
    assert not torch.equal(converted[name], load_file(folder / 'model.safetensors')[name])
    assert torch.equal(
        converted['combine.weight'], load_file(folder / 'model.safetensors')['combine.weight']
    )
    assert converted['kernels.kernels.10.sigma'].item() == pytest.approx(0.001)


def test_files_that_run_code_or_are_not_there(main, published, tmp_path, capsys):
    _, weights, base = published('vanilla')
    output = tmp_path / 'converted'
    weights.write_bytes(pickle.dumps({'cls.weight': print}, protocol=2))
    assert run(main, cedr(weights, base, output)) == 2
    assert 'is not a file of PyTorch weights' in capsys.readouterr().err
    assert run(main, cedr('none.p', base, output)) == 2
    assert 'none.p does not exist' in capsys.readouterr().err
    assert run(main, cedr(weights, base, base)) == 2
    assert 'exists: remove it' in capsys.readouterr().err

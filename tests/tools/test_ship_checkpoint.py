import json
import tomllib

import pytest
import yaml
from folders import write_files

from pyserini_repbert import catalog
from pyserini_repbert.checksums import verify_checksums
from pyserini_repbert.commands.command import run

TOOL = 'ship_checkpoint'


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, 'RESOURCES', tmp_path / 'resources')
    return tmp_path / 'resources/checkpoints'


@pytest.fixture
def trained(tmp_path):
    """A folder as `train` leaves it, its recipe with a path."""
    recipe = {
        'name': 'a-demo',
        'description': 'What it is.',
        'licence': 'Apache-2.0',
        'data': ['/far/data/x.tsv'],
    }
    ranking = {'system': 'repbert', 'max_query_length': 20}
    return write_files(
        tmp_path / 'out',
        {
            'recipe.yaml': yaml.safe_dump(recipe),
            'README.md': '# a-demo\n\n- data: topics /far/data/x.tsv, '
            'see https://example.org/x\n\n## Recipe\n',
            'adapter_config.json': json.dumps({'base_model_name_or_path': 'minilm'}),
            'config.json': json.dumps({'hidden_size': 16, 'ranking': ranking}),
            'log.csv': 'step,loss\n',
            'adapter_model.safetensors': b'weights',
        },
    )


def test_paths_are_replaced_and_the_entry_is_printed(main, trained, shipped, capsys):
    assert run(main, [str(trained), '--replace', '/far/data=${DATA}']) == 0
    assert yaml.safe_load((shipped / 'a-demo/recipe.yaml').read_text())['data'] == ['${DATA}/x.tsv']
    assert '/far' not in (shipped / 'a-demo/README.md').read_text()
    entry = tomllib.loads(capsys.readouterr().out)['KIND']['a-demo']
    assert entry['ranking'] == {'system': 'repbert', 'max_query_length': 20}
    assert (entry['base'], entry['resource'], entry['dimension']) == (
        'minilm',
        'checkpoints/a-demo',
        16,
    )
    assert catalog.resource(catalog.Entry('encoders', 'a-demo', entry)) == shipped / 'a-demo'
    assert (
        verify_checksums(
            shipped / 'a-demo', ['adapter_config.json', 'adapter_model.safetensors', 'config.json']
        )
        == 3
    )


def test_paths_of_the_machine_are_refused(main, trained, shipped, capsys):
    assert run(main, [str(trained)]) == 2
    assert (
        "names a path of this machine, '- data: topics /far/data/x.tsv" in capsys.readouterr().err
    )
    assert not shipped.exists()


def test_weights_in_half_the_size(main, trained, shipped):
    import torch
    from safetensors.torch import load_file, save_file

    save_file(
        {'a': torch.tensor([1.0, 0.1]), 'n': torch.tensor([7])},
        trained / 'adapter_model.safetensors',
    )
    assert run(main, [str(trained), '--replace', '/far/data=${DATA}', '--half']) == 0
    kept = load_file(shipped / 'a-demo/adapter_model.safetensors')
    assert kept['a'].dtype is torch.float16 and kept['n'].tolist() == [7]
    torch.testing.assert_close(kept['a'].float(), torch.tensor([1.0, 0.1]), atol=1e-4, rtol=0)
    assert load_file(trained / 'adapter_model.safetensors')['a'].dtype is torch.float32
    assert '- weights kept in float16' in (shipped / 'a-demo/README.md').read_text()

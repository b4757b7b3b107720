"""The command: a recipe to a checkpoint, one line for what is wrong."""

import hashlib

from pyserini_repbert.commands import command
from pyserini_repbert.commands.train import main
from pyserini_repbert.record import code_version, read_record

RANKING = {'max_query_length': 8, 'max_doc_length': 16}


def test_a_recipe_becomes_a_checkpoint(recipe_file, tmp_path, capsys):
    path = str(recipe_file('repbert', ranking=RANKING))
    output = tmp_path / 'out'
    arguments = [path, '--set', 'training.steps=2', '--output', str(output), '--device', 'cpu']
    assert command.run(main, arguments) == 0
    assert f'{output}: 2 steps, mean loss' in capsys.readouterr().out
    kept = ' '.join(sorted(file.name for file in output.iterdir()))
    assert (
        kept == 'README.md config.json log.csv model.safetensors recipe.yaml sha256sums vocab.txt'
    )
    record = read_record(output)
    weights = output.parent / record.models[0].name / 'model.safetensors'
    assert record.models[0].weights == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert record.command[3:6] == (path, '--set', 'training.steps=2') and record.settings[
        'set'
    ] == ['training.steps=2']
    assert {'recipe', 'topics', 'qrels', 'corpus'} <= {own.role for own in record.inputs}
    assert all(own.sha256 for own in record.inputs)
    told = record.settings['recipe_settings']
    expected = {
        'seed': 42,
        'weight_decay': 0.01,
        'max_grad_norm': 1.0,
        'schedule': 'linear',
        'optimizer': 'adamw',
        'steps': 2,
    }
    assert expected.items() <= told['training'].items()
    assert told['ranking'] == {'system': 'repbert', **RANKING}
    assert told['data'][0]['negatives'] == 1 and told['validation'] is None
    assert record.versions['code'] == code_version()
    assert command.run(main, arguments) == 2
    assert 'is there already' in capsys.readouterr().err
    assert command.run(main, [*arguments, '--overwrite']) == 0


def test_the_scale_that_a_unit_layer_begins_with_is_said(recipe_file, tmp_path, caplog):
    path = str(recipe_file('repbert', ranking=RANKING, training={'unit_layer': True}))
    arguments = [path, '--output', str(tmp_path / 'out'), '--device', 'cpu']
    assert command.run(main, arguments) == 0
    notes = [line for line in caplog.messages if line.startswith('scale of inner products: ')]
    assert len(notes) == 1
    assert notes[0] in (tmp_path / 'out/README.md').read_text(encoding='utf-8')

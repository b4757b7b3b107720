"""`train --folds`: a model for each fold and seed, its fold's run, and the scores of all."""

import json

import pytest

from pyserini_repbert.checksums import digest
from pyserini_repbert.commands import command, evaluate as evaluate_command
from pyserini_repbert.commands.train import main
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.evaluate.folds import read_qids
from pyserini_repbert.record import read_record
from pyserini_repbert.train import folds as training_of_folds

RANKING = {'architecture': 'vanilla', 'max_query_length': 8, 'max_doc_length': 16}
TRAINING = {'steps': 2, 'loss': 'hinge'}


@pytest.fixture
def folds(world, tmp_path):
    """Three folds of eight topics, with their parts of the run."""
    of_folds = []
    for first in range(3):
        of_folds.append([f'q{number}' for number in range(first, 24, 3)])
    (tmp_path / 'folds.json').write_text(json.dumps(of_folds), encoding='utf-8')
    words = ['split-folds', '--folds', str(tmp_path / 'folds.json'), '--topics', world['topics']]
    output = tmp_path / 'folds'
    arguments = [*words, '--run', world['run'], '--output', str(output)]
    assert command.run(evaluate_command.main, arguments) == 0
    return output


@pytest.fixture
def arguments(recipe_file, world, folds, tmp_path):
    """The command's words but for seeds; the recipe reads the folder of a fold."""
    keys = ('topics', 'qrels', 'corpus', 'run')
    source = {key: world[key] for key in keys} | {'qids': '${FOLD}/train.tsv'}
    validation = source | {'qids': '${FOLD}/validation.tsv', 'depth': 4, 'measure': 'P@1'}
    path = recipe_file(
        'cedr',
        ranking=RANKING,
        training=TRAINING,
        data=[source],
        validation=validation | {'every': 1},
        test_topics=['${FOLD}/test.tsv'],
    )
    output = str(tmp_path / 'out')
    return [str(path), '--folds', str(folds), '--output', output, '--device', 'cpu']


def test_a_line_trains_and_scores_all_folds_and_seeds(arguments, folds, tmp_path, capsys):
    words = ['--seeds', '1', '2', '--measures', 'P@1', 'RR@4']
    assert command.run(main, [*arguments, *words]) == 0
    printed = capsys.readouterr().out
    output = tmp_path / 'out'
    assert f'{output}/seed-2/fold-3: 2 steps, P@1 ' in printed
    header, _, first, second, last = printed.splitlines()[-5:]
    assert header.split() == ['|', 'seed', '|', 'P@1', '|', 'RR@4', '|']
    assert first.startswith('| 1 ') and second.startswith('| 2 ')
    assert last.startswith('| mean ± standard deviation | ') and last.count(' ± ') == 3
    for number in (1, 2, 3):
        tested = read_qids(folds / f'fold-{number}' / 'test.tsv')
        run = read_run(output / 'seed-1' / f'fold-{number}.run')
        assert list(run) == tested
        assert {len(ranking) for ranking in run.values()} == {4}
    joined = read_run(output / 'seed-1.run')
    assert sorted(joined) == sorted(f'q{number}' for number in range(24))
    assert read_record(output / 'seed-1.run').command[3:5] == (arguments[0], '--folds')


def test_a_fold_is_trained_as_alone(arguments, folds, tmp_path):
    assert command.run(main, arguments) == 0
    alone = [arguments[0], '--set', f'variables.FOLD={folds}/fold-2', '--set', 'training.seed=42']
    output = str(tmp_path / 'alone')
    assert command.run(main, [*alone, '--output', output, '--device', 'cpu']) == 0
    weights = tmp_path / 'out' / 'seed-42' / 'fold-2' / 'model.safetensors'
    assert digest(weights) == digest(tmp_path / 'alone' / 'model.safetensors')


def test_what_was_stopped_goes_on(arguments, tmp_path, monkeypatch, capsys):
    assert command.run(main, [*arguments[:3], '--output', str(tmp_path / 'whole')]) == 0
    train = training_of_folds.train
    trained = []

    def stop_at_the_third(recipe, output, **settings):
        trained.append(output.name)
        if len(trained) == 3:
            raise KeyboardInterrupt
        return train(recipe, output, **settings)

    monkeypatch.setattr(training_of_folds, 'train', stop_at_the_third)
    assert command.run(main, arguments) == 130
    assert 'interrupted: to continue, run it again with --resume' in capsys.readouterr().err
    output = tmp_path / 'out'
    before = (output / 'seed-42' / 'fold-1.run').stat().st_mtime_ns
    monkeypatch.setattr(training_of_folds, 'train', train)
    assert command.run(main, arguments) == 2
    assert 'fold-1 is there already: resume' in capsys.readouterr().err
    assert command.run(main, [*arguments, '--resume']) == 0
    assert (output / 'seed-42' / 'fold-1.run').stat().st_mtime_ns == before
    for name in ('seed-42.run', 'seed-42/fold-2.run', 'seed-42/fold-3/model.safetensors'):
        assert digest(output / name) == digest(tmp_path / 'whole' / name)


def test_numbers_in_settings(arguments, tmp_path):
    words = ['--set', 'description=fold {fold} of seed {seed}', '--seeds', '7']
    assert command.run(main, [*arguments, *words]) == 0
    card = (tmp_path / 'out' / 'seed-7' / 'fold-3' / 'README.md').read_text(encoding='utf-8')
    assert 'fold 3 of seed 7' in card


def test_what_cannot_be_trained_is_refused_before_anything_is(arguments, folds, tmp_path, capsys):
    (folds / 'fold-3' / 'test.run').unlink()
    assert command.run(main, arguments) == 2
    error = capsys.readouterr().err
    assert 'fold-3 lacks test.run: make the folds with `evaluate split-folds` and a run' in error
    elsewhere = [arguments[0], '--folds', str(tmp_path), *arguments[3:]]
    assert command.run(main, elsewhere) == 2
    assert 'is not a folder of folds: expected fold-1' in capsys.readouterr().err
    assert command.run(main, [*arguments[:1], '--seeds', '3']) == 2
    assert (
        '--seeds and --measures are for --folds: give it, or leave them out'
        in capsys.readouterr().err
    )
    assert not (tmp_path / 'out').exists()


def test_a_recipe_without_a_reranker_is_refused(recipe_file, folds, tmp_path, capsys):
    path = str(recipe_file('repbert', ranking={'max_query_length': 8, 'max_doc_length': 16}))
    words = ['--folds', str(folds), '--output', str(tmp_path / 'out')]
    assert command.run(main, [path, *words]) == 2
    assert "recipe 'tiny-repbert' trains no reranker" in capsys.readouterr().err

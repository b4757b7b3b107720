"""Training all demo checkpoints: which commands are run, in which order; the package's own part is played by a list."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.train.reading import read_recipe, recipe_path

TOOLS = Path(__file__).parents[2] / 'tools'


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    for name in ('demo_commands', 'demo_material', 'demo_candidates', 'demo_pairs', 'demo_train'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module('demo_train')


@pytest.fixture
def data(tmp_path, tool):
    for folder, names in (('medquad', tool.MEDQUAD), ('qed', tool.QED)):
        (tmp_path / 'data' / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / 'data' / folder / name).touch()
    return tmp_path / 'data'


@pytest.fixture
def commands(tool, monkeypatch):
    """The commands that were run; what one names with --output is then there."""
    found = []

    def command(words):
        found.append(list(words))
        output = Path(words[words.index('--output') + 1])
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch() if words[0] in ('search', 'rerank') else output.mkdir()

    monkeypatch.setattr(tool, 'package_command', command)
    monkeypatch.setattr(sys.modules['demo_pairs'], 'package_command', command)
    monkeypatch.setattr(tool, 'write_pairs', lambda work, checkpoint: found.append(['pairs', str(checkpoint)]))
    monkeypatch.setattr(tool, 'write_material', lambda data, folder, precision: folder.mkdir(exist_ok=True))
    return found


def test_every_checkpoint_after_what_it_needs(tool, data, commands, tmp_path):
    arguments = ['--data', str(data), '--work', str(tmp_path / 'work')]
    assert run(tool.main, arguments) == 0
    assert [words[0] for words in commands[:4]] == ['search', 'search', 'index', 'search']
    trained = {words[1]: words for words in commands[4:] if words[0] == 'train'}
    assert list(trained) == [training.recipe for training in tool.TRAININGS]
    assert f'variables.START={tmp_path / "work/monobert-demo"}' in trained['demo-duobert']
    assert f'variables.START={tmp_path / "work/epic-first-demo"}' in trained['demo-epic-second']
    assert f'variables.START={tmp_path / "work/epic-second-demo"}' in trained['demo-epic']
    assert f'variables.MATERIAL={tmp_path / "work/material"}' in trained['demo-repbert']
    assert f'variables.START={tmp_path / "work/monobert-first-demo"}' in trained['demo-monobert']
    assert f'variables.START={tmp_path / "work/monobert-demo"}' in trained['demo-vanilla']
    assert f'variables.VANILLA={tmp_path / "work/vanilla-demo"}' in trained['demo-cedr-drmm']
    assert f'variables.MEDQUAD={data / "medquad"}' in trained['demo-epic']
    assert f'variables.MATERIAL={tmp_path / "work/material"}' in trained['demo-monobert']
    assert f'variables.RUNS={tmp_path / "work/runs"}' in trained['demo-epic-first']
    assert f'variables.RUNS={tmp_path / "work/runs"}' in trained['demo-duobert']
    reranked, after = commands.index(trained['demo-duobert']) - 1, len(commands)
    assert commands[reranked][0] == 'rerank'
    assert f'{tmp_path / "work/monobert-demo"}@16' in commands[reranked]
    assert commands[reranked - 1] == ['pairs', str(tmp_path / 'work/monobert-demo')]
    assert after == 4 + len(tool.TRAININGS) + 2
    assert run(tool.main, arguments) == 0
    assert len(commands) == after


def test_the_recipes_have_the_variables_that_they_are_given(tool, tmp_path):
    for training in tool.TRAININGS:
        values = {'MEDQUAD': 'M', 'MATERIAL' if training.taught else 'RUNS': 'R'}
        values |= {'RUNS': 'R'} if training.reranked else {}
        values |= {training.variable: 'before'} if training.variable else {}
        recipe = read_recipe(recipe_path(training.recipe), [f'variables.{name}={own}' for name, own in values.items()])
        assert recipe.name == training.name
        assert ('before' in recipe.text) == bool(training.variable)


def test_a_training_that_was_stopped_goes_on(tool, data, commands, tmp_path):
    (tmp_path / 'work/epic-first-demo.training').mkdir(parents=True)
    arguments = ['--data', str(data), '--work', str(tmp_path / 'work'), '--only', 'epic-first-demo', '--device', 'cpu']
    assert run(tool.main, arguments) == 0
    assert commands[-1][:2] == ['train', 'demo-epic-first']
    assert commands[-1][-5:] == ['--device', 'cpu', '--output', str(tmp_path / 'work/epic-first-demo'), '--resume']

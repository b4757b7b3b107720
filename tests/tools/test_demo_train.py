"""Training all demo checkpoints: which commands are run, in which order; the package's own part is played by a list."""

import importlib
import sys
from pathlib import Path

import pytest

from pyserini_repbert.train.reading import read_recipe, recipe_path

TOOLS = Path(__file__).parents[2] / 'tools'


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    for name in ('demo_commands', 'demo_material', 'demo_candidates', 'demo_pairs', 'demo_train'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module('demo_train')


def test_the_recipes_have_the_variables_that_they_are_given(tool, tmp_path):
    for training in tool.TRAININGS:
        values = {'MEDQUAD': 'M', 'MATERIAL' if training.taught else 'RUNS': 'R'}
        values |= {'RUNS': 'R'} if training.reranked else {}
        values |= {training.variable: 'before'} if training.variable else {}
        recipe = read_recipe(recipe_path(training.recipe), [f'variables.{name}={own}' for name, own in values.items()])
        assert recipe.name == training.name
        assert ('before' in recipe.text) == bool(training.variable)

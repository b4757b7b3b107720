"""Recipes with entries of every wrong kind: one line each, and nothing left behind."""

from __future__ import annotations

import logging
import random
import sys
from pathlib import Path

import pytest
import yaml

from pyserini_repbert.commands import command
from pyserini_repbert.commands.train import main
from pyserini_repbert.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[1] / 'attack'))
import mutations

RANKINGS = {
    'repbert': {'max_query_length': 8, 'max_doc_length': 16},
    'monobert': {'max_query_length': 8, 'max_length': 48, 'layout': 'paper'},
    'duobert': {'max_query_length': 8, 'max_length': 48},
    'epic': {'max_query_length': 8, 'max_doc_length': 40, 'variant': 'official'},
    'cedr': {'architecture': 'knrm', 'max_query_length': 6, 'joint': True, 'pad_query': True, 'k_max': 2},
}
WRONG = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 2**31, 10**30, -(10**18), 0.0, 0.5, -0.5, 1e308, float('inf'),
    float('nan'), '', ' ', 'x', 'true', '1', '1e-3', '../x', '/', '${HOME}', '${NOWHERE}', '{', 'ü\u2028', 'a\0b',
    'x' * 5000, 'ir_datasets:x', 'demo', [], [[]], [1], ['x'], [None], {}, {'x': 1}, {1: 2}, {'max_length': 'x'}, [{}],
)  # fmt: skip
KEYS = ('stepz', 'text', '', 1, None, 'variables')
REACHED = 'training would begin'


@pytest.fixture
def attack(recipe_file, world, tmp_path, monkeypatch, capsys, caplog):
    """attack(cases, seed) -> how many mutated recipes were refused in one line, with how many training would begin."""
    from pyserini_repbert.train.trainer import RankingTrainer

    def reached(self, checkpoint):
        self.get_batch_samples(iter(self.get_train_dataloader()), 1, 'cpu')
        raise InputError(REACHED)

    monkeypatch.setattr(RankingTrainer, 'run', reached)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.CRITICAL)
    validation = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    keys = {'validation': validation | {'every': 2, 'sample': 4}, 'allow_test_topics': True}
    contents = []
    for system, ranking in RANKINGS.items():
        adapter = {'rank': 2, 'alpha': 4, 'dropout': 0.1, 'targets': ['query']}
        training = {'scale': 2.0, 'dropout': 0.1, 'loss': 'hinge', 'seed': 3, 'workers': 0, 'schedule': 'linear'}
        file = recipe_file(system, ranking=ranking, adapter=adapter, training=training, **keys)
        contents.append(yaml.safe_load(file.read_text()))
        file.unlink()
    before = sorted(path.name for path in tmp_path.iterdir())

    def run(cases: int, seed: int):
        draw = random.Random(seed)
        refused = began = 0
        for number in range(cases):
            content = draw.choice(contents)
            path = tmp_path / 'mutated.yaml'
            raw = yaml.safe_dump(mutations.mutated_values(content, draw, WRONG, KEYS))
            path.write_text(raw)
            status = command.run(main, [str(path), '--output', 'out', '--device', 'cpu', '--quiet'])
            printed = capsys.readouterr()
            path.unlink()
            assert status == 2, (number, raw)
            lines = [line for line in printed.err.splitlines() if line.startswith('error: ')]
            assert len(lines) == 1 and 'Traceback' not in printed.err, (number, raw, printed.err)
            assert sorted(path.name for path in tmp_path.iterdir()) == before, (number, raw)
            began += lines[0].endswith(REACHED)
            refused += not lines[0].endswith(REACHED)
        return refused, began

    return run


def test_some_mutated_recipes(attack):
    refused, began = attack(200, 1)
    assert refused > 100 and began >= 5


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2, 6))
def test_many_mutated_recipes(attack, seed):
    refused, began = attack(1000, seed)
    assert refused > 500 and began >= 25

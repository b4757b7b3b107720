"""The logs of a training: what is written, where it stays, and what a resumed training hides."""

from types import SimpleNamespace

import pytest
import torch

from pyserini_repbert.train.csv_log import CsvLog
from pyserini_repbert.train.result import Trained, read_log
from pyserini_repbert.train.trainer import RankingTrainer
from pyserini_repbert.train.training import train

REPBERT = {'max_query_length': 8, 'max_doc_length': 16}


def test_event_files_lie_beside_the_log(tiny_recipe, tmp_path):
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 1})
    train(recipe, tmp_path / 'out', tensorboard=True, device='cpu')
    assert any((tmp_path / 'out/tensorboard').iterdir())


def test_a_log_has_what_the_state_has_logged(tmp_path):
    """What a killed process wrote beyond its last state, half a line of it, is gone."""
    from transformers import TrainerControl, TrainerState

    log = CsvLog(tmp_path / 'log.csv', 4)
    state = TrainerState(is_world_process_zero=True)
    log.path.write_text('step,loss\n1,0.1\n12,1.')
    state.log_history = [
        {'loss': 0.1, 'epoch': 1, 'step': 1},
        {'eval_measure': 0.5, 'step': 1},
        {'x': 1, 'step': 1},
    ]
    log.on_train_begin(None, state, TrainerControl())
    state.log_history.append({'loss': 3.2, 'step': 12})
    log.on_log(None, state, TrainerControl(), {'loss': 3.2})
    assert log.path.read_text().splitlines()[1:] == ['1,0.1,,,,,', '1,,,,0.5,,', '12,3.2,,,,,']
    assert read_log(tmp_path / 'none.csv') == []


def test_operations_are_counted_by_token_and_weight():
    """Three rows of 3 tokens; 4 x 5 weights learn, 5 x 2 are frozen, an embedding is looked up:
    9 (6 · 20 + 4 · 10).
    """
    model = torch.nn.ModuleDict(
        {'embeddings': torch.nn.Embedding(7, 4), 'a': torch.nn.Linear(4, 5)}
    )
    model['b'] = torch.nn.Linear(5, 2).requires_grad_(False)
    batch = {
        'query_input_ids': torch.zeros(2, 2),
        'input_ids': torch.zeros(2, 1),
        'attention_mask': torch.ones(9),
    }
    batch['groups'] = [{'input_ids': torch.zeros(1, 3), 'attention_mask': None}]
    operations = RankingTrainer.floating_point_ops(SimpleNamespace(model=model), batch)
    assert operations == 9 * (6 * 20 + 4 * 10)


ROWS = [
    {'step': 3, 'loss': 1.0},
    {'step': 4, 'eval_measure': 0.25, 'eval_cutoff': 5, 'eval_at_cutoff': 0.5},
    {'step': 6, 'loss': 0.5},
    {'step': 7, 'loss': 0.8},
    {'step': 7, 'eval_measure': 0.125},
]


def test_what_came_of_a_training_is_told_by_its_log(tmp_path):
    """Losses of 3, 3 and 1 steps: (3 · 1.0 + 3 · 0.5 + 1 · 0.8) / 7."""
    assert Trained.from_log(tmp_path, ROWS) == Trained(
        folder=tmp_path,
        steps=7,
        loss=pytest.approx(5.3 / 7),
        best=0.25,
        cutoff=5,
        at_cutoff=0.5,
        before=None,
    )


def test_a_log_of_texts_tells_the_same(tmp_path):
    """A CSV file has a text in each column, '' where the row has no value."""
    columns = ('step', 'loss', 'eval_measure', 'eval_cutoff', 'eval_at_cutoff')
    texts = [{column: str(row.get(column, '')) for column in columns} for row in ROWS]
    assert Trained.from_log(tmp_path, texts) == Trained.from_log(tmp_path, ROWS)


def test_the_measure_before_training_is_no_result(tmp_path):
    rows = [{'step': 0, 'eval_measure': 0.9}, {'step': 2, 'eval_measure': 0.3}]
    trained = Trained.from_log(tmp_path, rows)
    assert trained.before == 0.9
    assert trained.best == 0.3


def test_an_empty_log_is_of_no_step(tmp_path):
    assert Trained.from_log(tmp_path, []) == Trained(tmp_path, steps=0, loss=0.0, best=None)

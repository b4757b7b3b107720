"""The logs of a training: what is written, where it stays, and what a resumed training hides."""

from __future__ import annotations

import pytest

from pyserini_repbert.errors import MissingDependencyError
from pyserini_repbert.train.logs import CsvLog, EventLog, read_log
from pyserini_repbert.train.training import check_machine, train

REPBERT = {'max_query_length': 8, 'max_doc_length': 16}


class Killed(Exception):
    """Stands for the end of a process."""


def test_event_files_hold_what_the_csv_file_holds(tiny_recipe, tmp_path, world, monkeypatch):
    """Killed at step 3 of 6 and resumed from step 2: every step once, in the finished checkpoint's folder."""
    events = pytest.importorskip('tensorboard.backend.event_processing.event_accumulator')
    validation = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')} | {'sample': 4, 'every': 2}
    recipe = tiny_recipe('repbert', ranking=REPBERT, validation=validation)
    original = EventLog.on_log

    def dies(self, args, state, control, logs=None, **kwargs):
        original(self, args, state, control, logs, **kwargs)
        if state.global_step == 3:
            raise Killed

    monkeypatch.setattr(EventLog, 'on_log', dies)
    with pytest.raises(Killed):
        train(recipe, tmp_path / 'out', device='cpu', tensorboard=True)
    monkeypatch.undo()
    assert any((tmp_path / 'out.training/tensorboard').iterdir())
    train(recipe, tmp_path / 'out', resume=True, device='cpu', tensorboard=True)
    assert not (tmp_path / 'out.training').exists()
    assert len(list((tmp_path / 'out/tensorboard').iterdir())) == 2
    found = events.EventAccumulator(str(tmp_path / 'out/tensorboard')).Reload()
    written = read_log(tmp_path / 'out/log.csv')
    counts = {}
    for name in ('loss', 'learning_rate', 'grad_norm', 'eval_measure', 'eval_cutoff'):
        expected = [(int(row['step']), float(row[name])) for row in written if row[name]]
        counts[name] = len(expected)
        assert [(point.step, point.value) for point in found.Scalars(name)] == [
            (step, pytest.approx(value, rel=1e-5)) for step, value in expected
        ]
    assert counts.pop('eval_cutoff') in (1, 2, 3)  # of the first model, and of any that is better
    assert counts == {'loss': 6, 'learning_rate': 6, 'grad_norm': 6, 'eval_measure': 3}


def test_without_tensorboard_one_line_says_what_to_install(tiny_recipe, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None if name == 'tensorboard' else find(name))
    with pytest.raises(MissingDependencyError, match='tensorboard') as caught:
        check_machine(tiny_recipe('repbert', ranking=REPBERT), 'cpu', tensorboard=True)
    assert '\n' not in str(caught.value)


def test_a_log_begins_anew_or_keeps_what_is_done(tmp_path):
    from transformers import TrainerControl, TrainerState

    log, state = CsvLog(tmp_path / 'log.csv'), TrainerState(is_world_process_zero=True)
    for begin, steps in ((0, (1, 2, 3)), (2, (3, 4))):
        state.global_step = begin
        log.on_train_begin(None, state, TrainerControl())
        for step in steps:
            state.global_step = step
            log.on_log(None, state, TrainerControl(), {'loss': step + begin / 10, 'epoch': 1})
    assert [(row['step'], row['loss']) for row in read_log(log.path)] == [
        ('1', '1.0'), ('2', '2.0'), ('3', '3.2'), ('4', '4.2')
    ]  # fmt: skip
    assert read_log(tmp_path / 'none.csv') == []

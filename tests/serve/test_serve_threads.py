"""How many threads the models of a service use."""

import torch

from pyserini_repbert.commands import command
from pyserini_repbert.models import question_threads
from pyserini_repbert.serve.command import main


def test_a_service_takes_the_threads_that_were_measured(monkeypatch, tmp_path, capsys):
    times = {'1': 4.0, '2': 5.0}
    monkeypatch.setattr(question_threads, 'best_times', lambda *_: times)
    taken = []
    monkeypatch.setattr(command, 'use_threads', taken.append)
    words = ['--config', str(tmp_path / 'missing.yaml')]
    assert command.run(main, [*words, '--threads', 'auto']) == 2
    assert 'missing' in capsys.readouterr().err
    assert command.run(main, [*words, '--threads', '2']) == 2
    assert taken == [1]
    assert command.run(main, [*words, '--threads', 'some']) == 2
    command.use_fastest_threads(processes=64)
    assert taken == [1, min(64, torch.get_num_threads())]

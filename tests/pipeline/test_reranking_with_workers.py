"""Reranking with worker processes that tokenise: the same bytes as without, each batch prepared
ahead.
"""

import os
import re
import signal
import threading

import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.rerank import main
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.models import tokenizer as tokenizer_module
from pyserini_repbert.pipeline import Machine
from pyserini_repbert.systems.monobert.reranker import MonoBertReranker
from tests.pipeline.conftest import run_stages


@pytest.fixture(autouse=True)
def few_texts_are_enough(monkeypatch):
    monkeypatch.setattr(tokenizer_module, 'FEWEST', 1)


@pytest.mark.parametrize(
    'stages', [['mono@10', 'duo@4'], ['duo@4'], ['epic@8', 'mono@5'], ['cedr@6']]
)
def test_workers_change_no_byte(stages, world, tiny_epic, tiny_cedr, tmp_path, capsys):
    models = {'mono': world.mono, 'duo': world.duo, 'epic': tiny_epic(), 'cedr': tiny_cedr('knrm')}
    named = [f'{models[stage.partition("@")[0]]}@{stage.partition("@")[2]}' for stage in stages]
    given = [
        '--run',
        world.run_file,
        '--topics',
        world.topics,
        '--corpus',
        world.corpus,
        '--tag',
        'tag',
    ]
    given += [word for name in named for word in ('--reranker', name)]
    for workers in ('0', '2'):
        main([*map(str, given), '--output', str(tmp_path / workers), '--workers', workers])
        stage_line = (
            r'reading \d+%, tokenising \d+%, computing \d+% of \d+\.\d s; \w+ was the slowest'
        )
        assert re.search(stage_line, capsys.readouterr().err)
    assert (tmp_path / '0').read_bytes() == (tmp_path / '2').read_bytes()


@pytest.mark.parametrize('saved', [False, True])
def test_a_batch_is_prepared_while_the_one_before_is_ranked(saved, world, monkeypatch):
    threads = []
    read = MonoBertReranker._read

    def noted(reranker, queries, lists):
        threads.append(threading.current_thread() is threading.main_thread())
        return read(reranker, queries, lists)

    monkeypatch.setattr(MonoBertReranker, '_read', noted)
    stages = [f'{world.mono}@10', f'{world.duo}@3']
    settings = {'batch_inputs': 5, 'save_scores': saved}
    alone = run_stages(world, stages, **settings)
    assert threads == [True] * 3
    together = run_stages(world, stages, machine=Machine(workers=2), **settings)
    assert threads[3:] == [False] * 3
    assert together.run == alone.run
    assert [(cost.inferences, cost.tokens, cost.truncated) for cost in together.costs] == [
        (cost.inferences, cost.tokens, cost.truncated) for cost in alone.costs
    ]


def test_a_killed_worker_ends_the_command_with_one_line(world, tmp_path, monkeypatch, capsys):
    score_lists = MonoBertReranker.score_lists

    def kill(reranker, *given):
        os.kill(next(iter(reranker.tokenizer.workers._pool._processes)), signal.SIGKILL)
        with pytest.raises(PyseriniRepbertError):
            for _ in range(1000):
                reranker.tokenizer.ids(['cat'] * 100)
        reranker._prepared.clear()
        return score_lists(reranker, *given)

    monkeypatch.setattr(MonoBertReranker, 'score_lists', kill)
    given = [
        '--run',
        world.run_file,
        '--topics',
        world.topics,
        '--corpus',
        world.corpus,
        '--quiet',
        '--workers',
        '2',
    ]
    given += ['--reranker', f'{world.mono}@10', '--output', tmp_path / 'out.txt']
    assert command.run(main, list(map(str, given))) == command.EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        'error: a process that tokenises was ended from outside'
    ) and line.endswith('(--workers)')
    assert not (tmp_path / 'out.txt').exists()

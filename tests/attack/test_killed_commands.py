"""kill -9 at every file event of encode, index epic, index epic-prune and rerank: the next command goes on or begins.

After each kill: with --resume the bytes are those of a run that was not killed, and nothing else is left; with neither
flag the same, or one line that names the way out; with --overwrite the same bytes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import indexes
import kill_at
import pytest

SCRIPT = Path(__file__).with_name('kill_commands.py')
QUICK = 12  # each twelfth kill point in the quick test


def attacked(tmp_path, command, arguments, every, first=0, before=None, small_batches=False):
    """Run the script; its figures."""
    job = {'command': command, 'arguments': [*map(str, arguments)], 'work': str(tmp_path / 'work'), 'every': every}
    job |= {'before': before and [*map(str, before)], 'small_batches': small_batches, 'first': first}
    (tmp_path / 'job.json').write_text(json.dumps(job))
    found = kill_at.fresh(SCRIPT, tmp_path / 'job.json', timeout=3600)  # two minutes on an idle machine
    print(f'{command}: {found["points"]} kill points, {found["looked"]} tried, {len(found["failures"])} failures')
    assert found['failures'] == []
    return found


def encoding(tiny_checkpoint, corpus_file, tmp_path):
    given = ['--corpus', corpus_file(5), '--encoder', tiny_checkpoint(), '--output', tmp_path / 'work' / 'index']
    return [*given, '--quiet', '--shard-size', '2', '--store-text', '--fp32']


def epic_encoding(tiny_epic, corpus_file, tmp_path):
    given = ['epic', '--corpus', corpus_file(5), '--encoder', tiny_epic(), '--output', tmp_path / 'work' / 'index']
    return [*given, '--quiet', '--shard-size', '2', '--weights', 'uint8', '--prune', '7', '--fp32']


@pytest.mark.parametrize('make', [indexes.dense, indexes.epic])
def test_some_kills_while_a_bundle_is_written(make, tmp_path):
    """Without a model, in forks of this process."""
    folder, work = tmp_path / 'index', tmp_path / 'work'
    make(folder)
    whole = kill_at.tree(folder)
    work.mkdir()
    found = kill_at.run(lambda: make(work / 'index'), work)
    assert (found.status, len(found.points) > 60) == (0, True)
    for number in range(1, len(found.points), QUICK):
        shutil.rmtree(work / 'index')
        assert kill_at.run(lambda: make(work / 'index'), work, at=number).killed
        make(work / 'index', resume=True)
        assert kill_at.tree(work / 'index') == whole, f'killed at {found.points[number]}'


@pytest.mark.slow
def test_every_kill_of_encode(tiny_checkpoint, corpus_file, tmp_path):
    attacked(tmp_path, 'encode', encoding(tiny_checkpoint, corpus_file, tmp_path), 1)


@pytest.mark.slow
def test_every_kill_of_encoding_over_another_index(tiny_checkpoint, corpus_file, tmp_path):
    arguments = encoding(tiny_checkpoint, corpus_file, tmp_path)
    attacked(tmp_path, 'encode', arguments, 1, before=[*arguments, '--vector-dtype', 'float16'])


@pytest.mark.slow
def test_every_kill_of_epic_encoding(tiny_epic, corpus_file, tmp_path):
    attacked(tmp_path, 'index', epic_encoding(tiny_epic, corpus_file, tmp_path), 1)


@pytest.mark.slow
def test_every_kill_of_pruning_an_epic_index(tiny_epic, corpus_file, tmp_path):
    from pyserini_repbert.commands.index import main

    (tmp_path / 'work').mkdir()
    assert main([*map(str, epic_encoding(tiny_epic, corpus_file, tmp_path)), '--store-text']) == 0
    (tmp_path / 'work' / 'index').rename(tmp_path / 'source')
    shutil.rmtree(tmp_path / 'work')  # the record
    given = ['epic-prune', '--index', tmp_path / 'source', '--output', tmp_path / 'work' / 'index', '--prune', '3']
    attacked(tmp_path, 'index', [*given, '--quiet'], 1)


@pytest.mark.slow
def test_every_kill_of_rerank(world, tmp_path):
    work = tmp_path / 'work'
    given = ['--run', world.run_file, '--topics', world.topics, '--corpus', world.corpus, '--output', work / 'out.txt']
    given += ['--reranker', f'{world.mono}@10', '--reranker', f'{world.duo}@4', '--quiet', '--fp32']
    given += ['--pairs', work / 'pairs.npz', '--cost', work / 'cost.json']
    attacked(tmp_path, 'rerank', given, 1, small_batches=True)

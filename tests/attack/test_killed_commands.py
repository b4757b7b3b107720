"""kill -9 at every file event of encode, index epic, index epic-prune and rerank: the next command goes on or begins.

After each kill: with --resume the bytes are those of a run that was not killed, and nothing else is left; with neither
flag the same, or one line that names the way out; with --overwrite the same bytes.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import indexes
import kill_at
import pytest

from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.encode.sharding import build_bundle

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


def parts(folder: Path, rename: bool = True) -> None:
    """What a user calls to encode two parts and put them together, the first time and after every kill."""
    if not rename:
        Path.rename = Path.replace = os.rename = refused
    if (folder / 'manifest.json').exists():
        if list(folder.glob('part-*')):
            finish_parts(folder, type(indexes.DENSE))
        return
    if not all((folder / f'part-{index}-of-2/manifest.json').exists() for index in (0, 1)):
        for index in (0, 1):
            passages = indexes.PASSAGES[index::2]
            build_bundle(passages, part_folder(folder, EncodingPart(index, 2)), indexes.ENCODING, resume=True)
    finish_parts(folder, type(indexes.DENSE))


def refused(path, target, **_):
    """What a file system without renaming answers."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(path))


@pytest.mark.parametrize('rename', [True, False])
def test_some_kills_of_parts(tmp_path, rename):
    work, folder = tmp_path / 'work', tmp_path / 'work/index'
    parts(tmp_path / 'whole')
    whole = kill_at.tree(tmp_path / 'whole')
    work.mkdir()
    found = kill_at.run(lambda: parts(folder, rename), work)
    assert (found.status, kill_at.tree(folder) == whole) == (0, True), found.output
    for number in range(1, len(found.points), QUICK):
        shutil.rmtree(folder, ignore_errors=True)
        assert kill_at.run(lambda: parts(folder, rename), work, at=number).killed
        again = kill_at.run(lambda: parts(folder, rename), work)
        assert again.status == 0, f'killed at {found.points[number]}: {again.output}'
        (folder / '.encoding.lock').unlink(missing_ok=True)  # of a process killed when all was done
        assert kill_at.tree(folder) == whole, f'killed at {found.points[number]}'


def test_some_kills_while_an_index_is_replaced(tmp_path):
    work, folder = tmp_path / 'work', tmp_path / 'work/index'
    indexes.dense(tmp_path / 'whole')
    whole = kill_at.tree(tmp_path / 'whole')

    def old() -> None:
        shutil.rmtree(work, ignore_errors=True)
        build_bundle(indexes.PASSAGES[:3], folder, indexes.ENCODING)

    old()
    found = kill_at.run(lambda: indexes.dense(folder, overwrite=True), work)
    assert (found.status, kill_at.tree(folder) == whole) == (0, True), found.output
    for number in range(1, len(found.points), QUICK):
        old()
        assert kill_at.run(lambda: indexes.dense(folder, overwrite=True), work, at=number).killed
        way = {'resume': True} if list(folder.glob('part-*')) else {'overwrite': True}
        indexes.dense(folder, **way)
        assert kill_at.tree(folder) == whole, f'killed at {found.points[number]}'


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

"""Workers at the shards of a plan: at once, elsewhere, on file systems that lack something, and finishing."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from pathlib import Path

from folders import tree

from pyserini_repbert.encode.output import Part, planned_output
from pyserini_repbert.encode.plan import read_plan


def test_workers_that_do_not_fit_are_refused_by_name(planned, tiny_checkpoint, tmp_path, call):
    before = tree(planned)
    for more, what in (
        (['--encoder', tiny_checkpoint('other', seed=1)], 'has weights_sha256'),
        (['--encoder', tiny_checkpoint('wide', hidden_size=32)], 'has weights_sha256'),
        (['--bf16'], '--bf16 does not go with --plan-shard, which takes its settings from the plan'),
        (['--vector-dtype=float16'], '--vector-dtype does not go with'),
        (['--resume'], '--resume does not go with'),
        (['--device', 'mps'], "device 'mps' is not available"),
    ):
        status, _, error = call('--output', planned, '--plan-shard', '0', *more)
        assert (status, what in error) == (2, True), error
    status, _, error = call('--output', planned, '--plan-shard', '0', kind='epic')
    assert status == 2 and "is of kind 'dense', this command makes 'epic'" in error
    for shards, what in (('3', 'has shards 0 to 2'), ('1-3', 'shard 3: '), ('2-1', 'expected K'), ('x', 'expected K')):
        status, _, error = call('--output', planned, '--plan-shard', shards)
        assert (status, what in error) == (2, True), error
    assert tree(planned) == before
    status, _, error = call('--output', tmp_path / 'nothing', '--finish')
    assert (status, 'holds no plan' in error) == (2, True)


def test_another_copy_of_corpus_and_model(planned, whole, made, call, tmp_path):
    corpus, model = Path(made[1]), Path(made[3])
    (tmp_path / 'elsewhere').mkdir()
    moved = [shutil.move(path, tmp_path / 'elsewhere' / path.name) for path in (corpus, model)]
    status, _, error = call('--output', planned, '--plan-shard', '0')
    assert status == 2 and f'{corpus} does not exist' in error
    assert call('--output', planned, '--plan-shard', '0-2', '--corpus', moved[0], '--encoder', moved[1])[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole


def test_finishing_names_what_is_missing_and_what_is_damaged(planned, whole, call):
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    status, _, error = call('--output', planned, '--finish')
    assert status == 2 and 'lacks 2 of 3 shards (0, 2): encode them first (--plan-shard)' in error
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    path = planned / 'shard-00001' / 'vectors.npy'
    path.write_bytes(path.read_bytes()[:-1] + b'?')
    status, _, error = call('--output', planned, '--finish')
    assert status == 2 and 'vectors.npy is damaged' in error and 'encode shard 1 again' in error
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole


def test_two_workers_at_one_shard(planned, made, call):
    with planned_output(planned, Part(1, 3)):
        status, _, error = call('--output', planned, '--plan-shard', '0-2')
        named = f'process {os.getpid()} on host {socket.gethostname()}'
        assert status == 2 and named in error
        assert (planned / 'shard-00000').is_dir() and not (planned / 'shard-00001').exists()
        assert call('--output', planned, '--plan-shard', '2')[0] == 0
        for step in (['--finish'], [*made, '--plan', '--overwrite'], [*made, '--overwrite']):
            status, _, error = call('--output', planned, *step)
            assert (status, named in error) == (2, True), error
    assert call('--output', planned, '--plan-shard', '1')[0] == 0
    assert len(read_plan(planned).shards) == 3


def test_a_worker_that_comes_second_where_there_are_no_locks(planned, whole, call, monkeypatch, tmp_path):
    """Both wrote the shard; the second finds it there when it gives its own a name."""
    copy = tmp_path / 'copy'
    shutil.copytree(planned, copy)
    assert call('--output', copy, '--plan-shard', '0')[0] == 0
    rename = Path.rename

    def late(path, target):
        if path.name.startswith('.shard-00000') and not Path(target).exists():
            shutil.copytree(copy / 'shard-00000', target)
        return rename(path, target)

    monkeypatch.setattr(Path, 'rename', late)
    for step in (['--plan-shard', '0-2'], ['--finish']):
        status, _, error = call('--output', planned, *step)
        assert status == 0, error
    assert tree(planned) == whole


def test_a_file_system_that_cannot_rename(planned, whole, made, call, monkeypatch, tmp_path):
    written = []

    def refused(path, target):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(path))

    monkeypatch.setattr(Path, 'rename', refused)
    monkeypatch.setattr(Path, 'replace', refused)
    copy = shutil.copyfile
    monkeypatch.setattr(shutil, 'copyfile', lambda one, to: (written.append(to.name), copy(one, to)))
    for step in (['--plan-shard', '0-2'], ['--finish']):
        assert call('--output', planned, *step)[0] == 0
    files = ['docids.txt', 'texts.jsonl', 'texts.offsets.npy', 'vectors.npy', 'shard.json']
    assert written == [*['shard.json', *files] * 3, 'encoding.json', 'manifest.json', 'planned.record.json']
    assert tree(planned) == whole


def test_a_half_copied_shard_is_encoded_again(planned, whole, call):
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    for name, half in (('shard-00000', None), ('shard-00002', 30)):
        record = planned / name / 'shard.json'
        text = record.read_bytes()
        record.unlink()
        if half:
            record.write_bytes(text[:half])
    assert call('--output', planned, '--plan-shard', '0-2')[0] == 0
    assert call('--output', planned, '--finish')[0] == 0
    assert tree(planned) == whole

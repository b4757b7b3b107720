"""Encoding with worker processes beside the device: the same bytes as without, bounded, and one
line where it fails.
"""

import os
import re
import signal
import threading

import pytest
from folders import tree

from pyserini_repbert.commands import command, encode as encode_command, index as index_command
from pyserini_repbert.encode import corpus as corpus_module, sharding
from pyserini_repbert.index.shard_writer import ShardWriter
from pyserini_repbert.models import tokenizer as tokenizer_module
from pyserini_repbert.models.tokenizer import share_workers
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.repbert.encoder import RepBertDocumentEncoder


@pytest.fixture
def groups_of_eight(monkeypatch):
    monkeypatch.setattr('pyserini_repbert.encode.dense.WINDOW', 8)
    monkeypatch.setattr('pyserini_repbert.encode.term_weights.window_size', lambda settings: 8)


@pytest.mark.usefixtures('groups_of_eight')
@pytest.mark.parametrize('system', ['repbert', 'epic'])
def test_workers_change_no_byte(
    system, tiny_checkpoint, tiny_epic, corpus_file, tmp_path, monkeypatch, capsys
):
    main, name, model = {
        'repbert': (encode_command.main, [], tiny_checkpoint()),
        'epic': (index_command.main, ['epic'], tiny_epic()),
    }[system]
    given = [
        '--corpus',
        str(corpus_file(90)),
        '--encoder',
        str(model),
        '--shard-size',
        '20',
        '--store-text',
    ]

    def run(output, *more):
        return command.run(main, [*name, *given, '--output', str(tmp_path / output), *more])

    assert run('alone') == run('workers', '--workers', '2') == 0
    printed = capsys.readouterr().err.splitlines()
    stages = r'reading \d+%, tokenising \d+%, computing \d+%, writing \d+% of \d+\.\d s; \w+ was the slowest'  # noqa: E501
    assert sum(bool(re.match(stages, line)) for line in printed) == 2
    expected = tree(tmp_path / 'alone')
    assert len(expected) > 20
    append = ShardWriter.append

    def stop(writer, passages, vectors):
        if any(passage.docid == 'd47' for passage in passages):
            raise KeyboardInterrupt
        append(writer, passages, vectors)

    monkeypatch.setattr(ShardWriter, 'append', stop)
    assert run('stopped', '--workers', '2') == 130
    assert sorted(path.name for path in (tmp_path / 'stopped').glob('shard-*')) == [
        'shard-00000',
        'shard-00001',
    ]
    monkeypatch.undo()
    monkeypatch.setattr('pyserini_repbert.encode.dense.WINDOW', 8)
    monkeypatch.setattr('pyserini_repbert.encode.term_weights.window_size', lambda settings: 8)
    assert run('stopped', '--workers', '2', '--resume') == 0
    for output in ('workers', 'stopped'):
        files = tree(tmp_path / output)
        assert {name: files[name] for name in expected} == expected, output


@pytest.mark.usefixtures('groups_of_eight')
def test_a_killed_worker_ends_the_command_with_one_line(
    tiny_checkpoint, corpus_file, tmp_path, monkeypatch, capsys
):
    append = ShardWriter.append

    def kill(writer, passages, vectors):
        for pool in pools:
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
        pools.clear()
        append(writer, passages, vectors)

    pools = []
    monkeypatch.setattr(ShardWriter, 'append', kill)
    monkeypatch.setattr(
        tokenizer_module,
        'share_workers',
        lambda *given: (share_workers(*given), pools.append(given[0][0].workers._pool)),
    )
    given = [
        '--corpus',
        str(corpus_file(4000)),
        '--encoder',
        str(tiny_checkpoint()),
        '--output',
        str(tmp_path / 'i'),
    ]
    assert (
        command.run(encode_command.main, [*given, '--workers', '2', '--quiet'])
        == command.EXIT_ERROR
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        'error: a process that tokenises was ended from outside'
    ) and line.endswith('(--workers)')
    assert not (tmp_path / 'i').exists()


@pytest.mark.usefixtures('groups_of_eight')
def test_stages_wait_for_the_slowest(tiny_checkpoint, corpus_file, tmp_path, monkeypatch):
    """A writer that stands still stops the reader after a few groups; each stage has a thread of
    its own.
    """
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    share_workers([encoder.tokenizer], 1)
    read = []
    threads = set()
    writing = threading.Event()
    go_on = threading.Event()
    append = ShardWriter.append
    embed = encoder.embed

    def noted(*given, **settings):
        threads.add(threading.current_thread())
        return embed(*given, **settings)

    def slow(writer, passages, vectors):
        writing.set()
        go_on.wait()
        append(writer, passages, vectors)

    def corpus():
        for passage in open_corpus(corpus_file(400)):
            read.append(passage)
            yield passage

    monkeypatch.setattr(ShardWriter, 'append', slow)
    monkeypatch.setattr(encoder, 'embed', noted)
    run = threading.Thread(
        target=corpus_module.encode_corpus, args=(corpus(), encoder, tmp_path / 'index')
    )
    run.start()
    writing.wait()
    length = -1
    same = 0
    while same < 5:  # half a second without a passage
        length, same = len(read), same + 1 if len(read) == length else 0
        threading.Event().wait(0.1)
    assert (
        length <= 8 * (1 + sharding.WRITING + 1 + 1 + 1 + 2) + 8 and threads and run not in threads
    )
    go_on.set()
    run.join()
    assert len(read) == 400

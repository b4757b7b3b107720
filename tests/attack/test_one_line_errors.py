"""What goes wrong around a command (a full disk, a broken server, a flag of another tool) is one line."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert import download
from pyserini_repbert.commands import command
from pyserini_repbert.commands.evaluate import main as evaluate
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import ExhaustedError, InputError, MissingResourceError, exhausted, within_limits
from pyserini_repbert.files import atomic_file, atomic_folder
from pyserini_repbert.rerank.saved_scores import SavedScores, write_saved_scores

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def failing(main, arguments, capsys) -> str:
    """What a command that fails says, in one line."""
    assert command.run(main, arguments) == command.EXIT_ERROR
    said = capsys.readouterr().err
    assert said.startswith('error: ') and said.count('\n') == 1
    return said


# A full disk


@pytest.mark.parametrize('mode', ['w', 'wb'])
@pytest.mark.parametrize('name', ['out', 'out.gz'])
def test_a_disk_that_fills_up(tmp_path, name, mode):
    (tmp_path / name).write_text('old')
    message = rf'^the disk is full: .*{name} could not be written \(\d+ MB free\)'
    with pytest.raises(ExhaustedError, match=message), atomic_file(tmp_path / name, mode) as stream:
        stream.write(b'new' if mode == 'wb' else 'new')
        raise FULL
    assert (tmp_path / name).read_text() == 'old'
    assert len(list(tmp_path.iterdir())) == 1


def test_a_disk_that_fills_up_under_a_folder(tmp_path):
    with pytest.raises(ExhaustedError, match='index could not be written'), atomic_folder(tmp_path / 'index'):
        raise FULL
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_full(tmp_path, capsys):
    (tmp_path / 'a').write_text('1 Q0 d 1 1.0 t\n')

    def main(arguments):
        from pyserini_repbert.commands.fusion import main as fusion

        return fusion(arguments)

    said = failing(main, ['--runs', str(tmp_path / 'a'), '--output', '/dev/full', '--quiet'], capsys)
    assert said.startswith('error: the disk is full: /dev/full could not be written')
    assert 'permissions' not in said


def test_a_quota_and_other_errors(tmp_path):
    assert 'the quota of the disk is used up' in str(exhausted(OSError(errno.EDQUOT, 'quota'), tmp_path / 'x'))
    assert exhausted(OSError(errno.EACCES, 'no'), tmp_path) is None
    with (
        pytest.raises(ExhaustedError, match='the disk is full: .*x could not be written'),
        within_limits(tmp_path / 'x'),
    ):
        raise RuntimeError(f'Error in void faiss::write_index: {os.strerror(errno.ENOSPC)}')
    with pytest.raises(RuntimeError, match='^other$'), within_limits(tmp_path / 'x'):
        raise RuntimeError('other')
    assert str(exhausted(FULL)) == 'the disk is full: make room, or write to another disk'


def test_a_full_disk_that_nobody_named(capsys):
    def main(arguments):
        raise OSError(errno.ENOSPC, 'No space left on device', '/nowhere/index')

    assert 'the disk is full: /nowhere/index could not be written' in failing(main, [], capsys)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where one can be mounted."""
    import subprocess

    folder = tmp_path / 'disk'
    folder.mkdir()
    options = ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', str(folder)]
    try:
        subprocess.run(['mount', *options], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('nothing can be mounted here')
    try:
        yield folder
    finally:
        subprocess.run(['umount', str(folder)], check=True)


@pytest.mark.parametrize('name', ['run', 'run.gz'])
def test_a_disk_that_is_really_full(small_disk, name):
    message = rf'{name} could not be written \(0 MB free\)'
    with pytest.raises(ExhaustedError, match=message), atomic_file(small_disk / name) as stream:
        for number in range(100_000):
            stream.write(f'{number * 7919 % 104729} Q0 {number} {number * number}\n')
    assert list(small_disk.iterdir()) == []


# A broken server


@pytest.fixture
def answering(monkeypatch) -> Iterator[object]:
    """answering(bytes) -> the address of a server that sends them to whoever asks, and hangs up"""
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    server = socket.create_server(('127.0.0.1', 0))
    answers: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(answers[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def answer(data: bytes) -> str:
        answers[:] = [data]
        return f'http://127.0.0.1:{server.getsockname()[1]}/file.bin'

    yield answer
    server.close()


@pytest.mark.parametrize(
    'data',
    [
        b'SSH-2.0-OpenSSH\r\n',  # BadStatusLine
        b'',  # RemoteDisconnected
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc',  # IncompleteRead
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
        b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc',
        b'HTTP/1.1 200 OK\r\n' + b'A: b\r\n' * 200 + b'\r\n',  # more headers than http.client takes
        b'HTTP/1.1 302 Found\r\nLocation: http://a..b/\r\n\r\n',
        b'HTTP/1.1 302 Found\r\nLocation: nowhere:x\r\n\r\n',
        b'HTTP/1.1 999 \xff\r\n\r\n',
    ],
)
def test_answers_that_are_no_download(answering, tmp_path, data):
    with pytest.raises(MissingResourceError, match=r'thing.*could not be fetched .*put it at') as caught:
        download.fetch(answering(data), tmp_path / 'file.bin', '0' * 32, '1 MB', 'thing')
    assert '\n' not in str(caught.value)
    assert not (tmp_path / 'file.bin').exists()


def test_a_length_that_is_no_number(answering, tmp_path):
    address = answering(b'HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\nabc')
    found = download.fetch(address, tmp_path / 'file.bin', '900150983cd24fb0d6963f7d28e17f72', '3 B', 'thing')
    assert found.read_bytes() == b'abc'


def test_a_disk_that_fills_up_during_a_download(answering, tmp_path, monkeypatch):
    def receive(address, part, on_progress):
        raise FULL

    monkeypatch.setattr(download, '_receive', receive)
    with pytest.raises(ExhaustedError, match=r'file\.bin\.part could not be written \(386 MB needed, .*free\)'):
        download.fetch(answering(b''), tmp_path / 'file.bin', '0' * 32, '386 MB', 'thing')


# Flags and values


@pytest.mark.parametrize(
    ('main', 'arguments', 'hint'),
    [
        (search, '--index demo --query x --bm25', "did you mean '--sparse bm25' instead of --bm25?"),
        (search, '--index demo --query x --k 3', "did you mean '--hits' instead of --k?"),
        (search, '--query x --k=3 --bm25', "did you mean '--hits' instead of --k, '--sparse bm25' instead of --bm25?"),
        (search, '--index demo --query x --topik y', "did you mean '--topics' instead of --topik?"),
        (evaluate, 'tradeoff x --qrels demo --measure RR', "did you mean '--measures' instead of --measure?"),
    ],
)
def test_flags_of_other_tools(main, arguments, hint, capsys):
    assert hint in failing(main, arguments.split(), capsys)


def test_known_flags_get_no_hint(capsys):
    assert 'did you mean' not in failing(search, ['--query', 'x', '--hits', '3'], capsys)


@pytest.mark.parametrize('value', ['1_0', '²', '٣', '-1', '9' * 400, '1.0', ''])
def test_counts_on_the_command_line(value, capsys):
    said = failing(search, ['--index', 'demo', '--query', 'x', f'--hits={value}'], capsys)
    assert 'is not a whole number of at least 1' in said or 'is not a whole number from 1 to 2147483647' in said


@pytest.mark.parametrize(
    ('main', 'arguments'),
    [
        (search, ['--index', 'demo', '--query', 'caf\udce9']),
        (explain, ['epic', '--model', 'epic-demo', '--query', 'caf\udce9', '--passage', 'x']),
        (explain, ['--model', 'epic-demo', '--query', 'x', '--passage', 'caf\udce9']),
        (explain, ['similarity', '--model', 'minilm', '--query', 'x', '--passage', 'caf\udce9']),
    ],
)
def test_arguments_that_are_no_utf8(main, arguments, capsys):
    assert r"'caf\udce9' is not valid UTF-8" in failing(main, arguments, capsys)


def test_texts_that_are_no_utf8_in_the_python_api(tiny_checkpoint):
    from pyserini_repbert.encode import RepBertQueryEncoder

    with pytest.raises(InputError, match=r"'\\ud800 x' is no text that UTF-8 can hold"):
        RepBertQueryEncoder(str(tiny_checkpoint())).encode('\ud800 x')


def test_explain_epic_by_name(capsys):
    by_name = failing(explain, ['epic', '--query', 'x', '--passage', 'y'], capsys)
    assert '--passage needs the --model' in by_name
    assert failing(explain, ['--query', 'x', '--passage', 'y'], capsys) == by_name
    assert "'epics' is not one of explain's subcommands (did you mean 'epic'?)" in failing(explain, ['epics'], capsys)


def kept(qid: str, n: int, m: int) -> SavedScores:
    differences = np.random.default_rng(0).normal(size=(m, m))
    docids = tuple(f'd{number}' for number in range(n))
    return SavedScores(qid, 'text', docids, -np.arange(n, dtype=float), np.arange(m), differences)


@pytest.mark.parametrize(
    ('n', 'm', 'shown'),
    [(5, 5, ['k0=5', 'k0=5 k1=5 sum']), (12, 0, ['k0=10', 'k0=12']), (25, 11, ['k0=10', 'k0=20', 'k0=25 k1=11 max'])],
)
def test_tradeoff_takes_its_defaults_from_the_file(tmp_path, capsys, n, m, shown):
    write_saved_scores(tmp_path / 'pairs.npz', [kept('q', n, m)], {})
    (tmp_path / 'qrels').write_text('q 0 d1 1\n')
    given = ['tradeoff', str(tmp_path / 'pairs.npz'), '--qrels', str(tmp_path / 'qrels'), '--quiet']
    assert command.run(evaluate, given) == 0
    settings = [line.split('|')[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith('| k0')]
    assert set(shown) <= set(settings)


def test_shards_that_are_no_numbers(tmp_path, capsys):
    from pyserini_repbert.commands.encode import main as encode

    said = failing(
        encode, f'--corpus demo --encoder repbert-demo --output {tmp_path / "out"} --shard ²/3'.split(), capsys
    )
    assert "part '²/3': expected i/n" in said and said.endswith('(--shard)\n')
    assert not (tmp_path / 'out').exists()

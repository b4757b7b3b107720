"""What goes wrong around a command (a full disk, a broken server, a flag of another tool) is one
line.
"""

import contextlib
import errno
import os
import socket
import threading

import pytest

from pyserini_repbert import download
from pyserini_repbert.commands import command
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import ExhaustedError, MissingResourceError
from pyserini_repbert.files import atomic_file

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def failing(main, arguments, capsys):
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
    message = rf'^the disk is full: .*{name} could not be written: make room'
    with pytest.raises(ExhaustedError, match=message), atomic_file(tmp_path / name, mode) as stream:
        stream.write(b'new' if mode == 'wb' else 'new')
        raise FULL
    assert (tmp_path / name).read_text() == 'old'
    assert len(list(tmp_path.iterdir())) == 1


def test_a_device_that_is_full(tmp_path, capsys):
    (tmp_path / 'a').write_text('1 Q0 d 1 1.0 t\n')

    def main(arguments):
        from pyserini_repbert.commands.fusion import main as fusion

        return fusion(arguments)

    said = failing(
        main, ['--runs', str(tmp_path / 'a'), '--output', '/dev/full', '--quiet'], capsys
    )
    assert said.startswith('error: the disk is full: /dev/full could not be written')
    assert 'permissions' not in said


# A broken server


@pytest.fixture
def answering(monkeypatch):
    """answering(bytes) -> the address of a server that sends them to whoever asks, and hangs up"""
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    server = socket.create_server(('127.0.0.1', 0))
    answers: list[bytes] = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(answers[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def answer(data):
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
        b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc',
        b'HTTP/1.1 200 OK\r\n' + b'A: b\r\n' * 200 + b'\r\n',  # more headers than http.client takes
        b'HTTP/1.1 302 Found\r\nLocation: http://a..b/\r\n\r\n',
    ],
)
def test_answers_that_are_no_download(answering, tmp_path, data):
    with pytest.raises(MissingResourceError, match=r'thing.*put it at') as caught:
        download.fetch(answering(data), tmp_path / 'file.bin', '0' * 32, '1 MB', 'thing')
    assert '\n' not in str(caught.value)
    assert not (tmp_path / 'file.bin').exists()


# Flags and values


@pytest.mark.parametrize(
    ('main', 'arguments'),
    [
        (search, ['--index', 'demo', '--query', 'caf\udce9']),
        (explain, ['--model', 'epic-demo', '--query', 'caf\udce9', '--passage', 'x']),
    ],
)
def test_arguments_that_are_no_utf8(main, arguments, capsys):
    assert r"'caf\udce9' is not valid UTF-8" in failing(main, arguments, capsys)

"""The service as a process, over real sockets: what no test client does, and how it stops."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyserini_repbert.serve.server import listen

pytestmark = pytest.mark.slow
SEARCH = '/v1/tiny/search?query=cat+sat&hits=3'


@pytest.fixture
def process(index_settings, rerankers, tmp_path):
    """A service of the tiny index on a free port of 127.0.0.1."""
    with listen('127.0.0.1', 0) as free:
        port = free.getsockname()[1]
    index = ['--index', f'tiny={index_settings.location}', '--rerankers', *rerankers]
    command = [sys.executable, '-m', 'pyserini_repbert.serve', *index, '--port', str(port)]
    command += [
        '--log-file',
        str(tmp_path / 'requests.jsonl'),
    ]  # a pipe that nobody reads would fill, and stop it
    environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[2])}
    said = tmp_path / 'stderr.txt'
    with (
        said.open('wb') as stderr,
        subprocess.Popen(command, stderr=stderr, env=environment) as started,
    ):
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    if _get(port, '/readyz')[0] == 200:
                        break
                assert started.poll() is None, said.read_text()
                time.sleep(0.1)
            yield started, port
            assert 'Traceback' not in said.read_text()
        finally:
            started.kill()


def _get(port, target):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
    try:
        connection.request('GET', target)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _sent(port, raw, most=30.0):
    """The status of the answer to raw bytes, and its JSON body."""
    with socket.create_connection(('127.0.0.1', port), timeout=most) as connection:
        connection.sendall(raw)
        return _received(connection)


def _received(connection):
    """The status of the answer that comes, and its JSON body."""
    found = b''
    while b'\r\n\r\n' not in found or not found.rstrip().endswith(b'}'):
        more = connection.recv(65536)
        if not more:
            break
        found += more
    head, _, body = found.partition(b'\r\n\r\n')
    return int(head.split()[1]), json.loads(body[body.index(b'{') : body.rindex(b'}') + 1])


def test_what_no_client_library_sends(process):
    _, port = process
    host = b' HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
    status, body = _sent(port, b'GET /v1/tiny/search?query=' + b'x' * 100_000 + host)
    assert status == 400 and list(body) == ['error'] and 'at most 2,000' in body['error'], (
        status,
        body,
    )
    assert _get(port, SEARCH)[0] == 200
    for raw in (
        b'GET /v1/tiny/search?query=' + b'x' * 300_000 + host,
        b'\x16\x03\x01\x02\x00 this is TLS\r\n\r\n',
        b'hello\r\n\r\n',
        b'GET /v1/tiny/search?query=\xff\xfe' + host,
        b'POST /v1/tiny/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ten\r\n\r\n',
    ):
        with socket.create_connection(('127.0.0.1', port), timeout=30) as connection:
            connection.sendall(raw)
            assert connection.recv(12) == b'HTTP/1.1 400'
        assert _get(port, SEARCH)[0] == 200


def test_it_answers_what_it_took_and_ends(process):
    started, port = process
    body = json.dumps(
        {'queries': [{'text': f'cat {n}'} for n in range(10)], 'rerank': ['duobert@6']}
    ).encode()
    head = b'POST /v1/tiny/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
    head += f'Content-Length: {len(body)}\r\n'.encode()
    # The first request opens the reranker, which takes long on a busy machine.
    assert _sent(port, head + b'\r\n' + body, 120.0)[0] == 200
    connections = [socket.create_connection(('127.0.0.1', port), timeout=120) for _ in range(4)]
    for connection in connections:
        connection.sendall(head + b'Expect: 100-continue\r\n\r\n')
    for connection in connections:
        # The service has taken the request: it asks for the body.
        assert connection.recv(1024) == b'HTTP/1.1 100 Continue\r\n\r\n'
        connection.sendall(body)
    started.send_signal(signal.SIGTERM)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(_received, connections))
    for connection in connections:
        connection.close()
    assert [status for status, _ in answers] == [200] * 4
    assert started.wait(30) is not None
    with pytest.raises(OSError):
        _get(port, '/healthz')

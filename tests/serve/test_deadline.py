"""Clients that take too long to send a request, over sockets of this machine."""

import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip('uvicorn', reason='the serve extra is not installed')

import uvicorn

from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.deadline import make_protocol
from pyserini_repbert.serve.server import listen
from pyserini_repbert.serve.settings import Limits, ServeSettings

SECONDS = 0.5
LATE = 12  # a busy machine takes its time; without a deadline, a service waits 15 seconds
HEAD = b'POST /v1/tiny/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'


@pytest.fixture
def port():
    """The port of a service without indexes, which waits half a second for a request."""
    app = create_app(ServeSettings(limits=Limits(body_bytes=1000)))
    protocol = make_protocol(SECONDS)
    config = uvicorn.Config(app, http=protocol, ws='none', log_config=None, timeout_keep_alive=15)
    server = uvicorn.Server(config)
    listener = listen('127.0.0.1', 0)
    thread = threading.Thread(target=server.run, kwargs={'sockets': [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(20)


def _connected(port):
    return socket.create_connection(('127.0.0.1', port), timeout=LATE)


def _rest(connection):
    """What comes until the service closes the connection."""
    found = b''
    with contextlib.suppress(ConnectionResetError):
        while more := connection.recv(65536):
            found += more
    return found


HALVES = {
    'nothing': b'',
    'half a header': b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-',
    'half a body': HEAD + b'Content-Length: 100\r\n\r\n{"queries"',
    'half a chunk': HEAD + b'Transfer-Encoding: chunked\r\n\r\n64\r\n{"queries"',
}


@pytest.mark.parametrize('raw', HALVES.values(), ids=HALVES.keys())
def test_half_a_request_is_given_up(port, raw):
    start = time.perf_counter()
    with _connected(port) as connection:
        connection.sendall(raw)
        answer = _rest(connection)
    assert answer.startswith(b'HTTP/1.1 408 ') and b'not complete within 0.5 s' in answer
    assert SECONDS * 0.9 < time.perf_counter() - start < LATE


def test_a_byte_now_and_then_wins_no_time(port):
    start = time.perf_counter()
    with _connected(port) as connection, contextlib.suppress(OSError):
        while time.perf_counter() - start < LATE:
            connection.sendall(b'G')
            time.sleep(0.1)
    assert time.perf_counter() - start < LATE


def test_many_of_them_are_gone_after_the_time(port):
    with contextlib.ExitStack() as held:
        connections = [held.enter_context(_connected(port)) for _ in range(50)]
        for connection in connections:
            connection.sendall(HALVES['half a header'])
        answers = [_rest(connection) for connection in connections]
    assert all(answer.startswith(b'HTTP/1.1 408 ') for answer in answers)


def test_a_kept_connection_is_no_slow_request(port):
    whole = b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
    with _connected(port) as connection:
        for _ in range(2):
            connection.sendall(whole)
            answer = b''
            while not answer.endswith(b'}'):
                answer += connection.recv(65536)
            assert answer.startswith(b'HTTP/1.1 200 ')
            time.sleep(2 * SECONDS)
        connection.sendall(whole[:20])
        assert _rest(connection).startswith(b'HTTP/1.1 408 ')


def test_a_body_that_is_too_long_is_refused_unread(port):
    start = time.perf_counter()
    with _connected(port) as connection:
        connection.sendall(HEAD + b'Content-Length: 1001\r\n\r\n')
        answer = connection.recv(65536)
        assert answer.startswith(b'HTTP/1.1 413 ')
        # the rest of the body is not waited for longer than any other
        _rest(connection)
    assert time.perf_counter() - start < LATE

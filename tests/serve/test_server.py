"""The socket that a service listens at, and its limit of open files."""

import json
import resource
import socket

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.access import ENTRY, GONE, access_log
from pyserini_repbert.serve.server import listen, log_requests, raise_file_limit


def test_the_socket_names_tcp_so_that_answers_leave_at_once():
    """asyncio leaves Nagle's algorithm on for a socket whose protocol is not named: 40 ms an
    answer.
    """
    with listen('127.0.0.1', 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_is_refused():
    with listen('127.0.0.1', 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=f'port {port}'):
            listen('127.0.0.1', port)


def test_an_address_that_is_none_is_refused():
    with pytest.raises(InputError, match='cannot listen'):
        listen('256.0.0.1', 8081)


def test_the_limit_of_open_files_is_raised():
    """Each connection is a file: a shell's usual 1024 would end at a thousand clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def log():
    """log(path, status): logs a request; the handlers of the log are set back."""
    handlers = list(access_log.handlers)
    propagates = access_log.propagate

    def log(path, status):
        entry = {'method': 'GET', 'path': path, 'status': status}
        access_log.info(json.dumps(entry), extra={ENTRY: entry})

    yield log
    access_log.handlers[:] = handlers
    access_log.propagate = propagates


def test_a_person_at_a_terminal_sees_failed_requests_alone(log, capsys):
    """Each request was a line of JSON."""
    log_requests(None, is_watched=True)
    log('/v1/mine/search', 200)
    log('/v1/mine/search', GONE)
    log('/v1/progress/page-1', 404)
    log('/v1/a\nb/search', 400)
    assert capsys.readouterr().err == 'GET /v1/a b/search: 400\n'


def test_other_logs_have_a_line_of_json_for_each_request(log, capsys):
    log_requests(None, is_watched=False)
    log('/v1/mine/search', 200)
    assert json.loads(capsys.readouterr().err)['status'] == 200

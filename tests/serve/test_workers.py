"""Several processes serve at one address."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from folders import wait_until

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from pyserini_repbert.serve.workers import check_workers

SEARCH = '/v1/tiny/search?query=cat+sat&hits=3'


def get(port, target):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
    try:
        connection.request('GET', target)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def children(process):
    listed = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text()
    return [int(pid) for pid in listed.split()]


def is_alive(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    return False


@pytest.fixture
def start(index_settings, tmp_path):
    """start() -> (process, port) of a service of two workers that answers."""
    with contextlib.ExitStack() as held:

        def begin(*flags, wait=True):
            with socket.socket() as free:
                free.bind(('127.0.0.1', 0))
                port = free.getsockname()[1]
            command = [sys.executable, '-m', 'pyserini_repbert.serve', '--workers', '2']
            command += ['--index', f'tiny={index_settings.location}', '--rerankers']
            command += ['--port', str(port), '--log-file', str(tmp_path / 'log.jsonl'), *flags]
            environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[2])}
            stderr = held.enter_context((tmp_path / 'stderr.txt').open('wb'))
            process = subprocess.Popen(command, stderr=stderr, env=environment)
            held.callback(process.kill)
            if wait:
                wait_until_ready(process, port)
            return process, port

        def wait_until_ready(process, port):
            # Each request may reach another worker: all have to be ready.
            n_ready = 0
            for _ in range(900):
                with contextlib.suppress(OSError):
                    n_ready = n_ready + 1 if get(port, '/readyz')[0] == 200 else 0
                if n_ready == 20:
                    return
                assert process.poll() is None, (tmp_path / 'stderr.txt').read_text()
                time.sleep(0.1)
            raise AssertionError('the service is not ready')

        yield begin


@pytest.mark.slow
def test_two_processes_answer_and_their_metrics_are_added_up(start, tmp_path):
    process, port = start()
    assert len(children(process)) >= 2
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: get(port, SEARCH), range(60)))
    assert {status for status, _ in answers} == {200}
    bodies = {re.sub(r'"ms":[^,]*', '', body) for _, body in answers}
    assert len(bodies) == 1
    _, metrics = get(port, '/metrics')
    (line,) = re.findall(r'pyserini_repbert_requests_total{.*search.*} (.*)', metrics)
    assert float(line) == 60
    assert 'pyserini_repbert_waiting{queue="dense"} 0.0' in metrics

    process.terminate()
    assert process.wait(60) == 0
    assert 'Traceback' not in (tmp_path / 'stderr.txt').read_text()


@pytest.mark.slow
def test_workers_end_with_the_process_that_started_them(start):
    process, _ = start()
    workers = children(process)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    wait_until(lambda: not any(map(is_alive, workers)))


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_service_with_one_line(start, tmp_path):
    process, port = start()
    for pid in children(process):
        if b'spawn_main' in Path(f'/proc/{pid}/cmdline').read_bytes():
            os.kill(pid, signal.SIGKILL)
            break
    assert process.wait(60) != 0
    said = (tmp_path / 'stderr.txt').read_text()
    assert 'a process that served has ended' in said and 'Traceback' not in said
    with pytest.raises(OSError, match='refused'):
        get(port, '/readyz')


@pytest.mark.slow
def test_indexes_that_cannot_be_opened_end_it_with_one_line(start, tmp_path):
    process, _ = start('--index', f'other={tmp_path}', wait=False)
    assert process.wait(60) == 2
    said = (tmp_path / 'stderr.txt').read_text()
    assert 'manifest.json' in said and 'Traceback' not in said


def test_what_one_process_serves():
    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine', writable=True)})
    check_workers(settings, 1)
    with pytest.raises(InputError, match="'mine' is writable: one process"):
        check_workers(settings, 2)
    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine', ray='auto')})
    with pytest.raises(InputError, match="'mine' is on a Ray cluster"):
        check_workers(settings, 2)


def test_mcp_over_stdio_has_one_process():
    with pytest.raises(InputError, match='MCP over stdio'):
        main(['serve', '--index', 'demo', '--workers', '2', '--mcp', 'stdio'])


def test_a_missing_index_is_said_before_the_address(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(main, ['serve', '--index', 'nope', '--port', '0']) == 2
    assert capsys.readouterr().err == (
        "error: index 'nope': 'nope' is neither a folder nor an index of the catalog\n"
    )

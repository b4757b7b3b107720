"""Work that waits together, the socket, clients that go away."""

import asyncio
import json
import logging
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.serve.app import listening, raise_file_limit
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.searching import GoneError, RequestTrace
from pyserini_repbert.serve.together import Queue, Together

FAULTY = '-'


@contextmanager
def _running(queue):
    """Threads that wait in a queue which runs."""
    queue.start()
    with ThreadPoolExecutor(32) as threads:
        yield threads
    queue.stop()


@contextmanager
def _busy(queue, threads):
    """The queue's thread is busy until the end of the context."""
    free = threading.Event()
    begun = threading.Event()
    first = threads.submit(queue.call, lambda: begun.set() or free.wait(30))
    assert begun.wait(30)
    yield first
    free.set()


def _until_waiting(queue, n):
    for _ in range(1000):
        if len(queue.jobs) == n:
            return
        time.sleep(0.01)
    raise AssertionError(f'{len(queue.jobs)} jobs wait, expected {n}')


class _Lengths(Ranker):
    """Ranks the numbers below a query's length; `FAULTY` is an error of its own."""

    def __init__(self):
        self.asked: list[tuple[int, int]] = []

    def _rank(self, topics, run, k, trace):
        self.asked.append((len(topics), k))
        return {
            topic.qid: Ranking([f'd{n // (topic.text != FAULTY)}' for n in range(k)], [0.0] * k)
            for topic in topics
        }


def test_requests_that_wait_are_searched_together_and_each_gets_its_own_hits():
    sizes: list[int] = []
    queue = Queue('test', 100, 8, on_batch=lambda _, size: sizes.append(size))
    ranker = _Lengths()
    together = Together(ranker, queue, 'lengths')
    with _running(queue) as threads, _busy(queue, threads):
        asked = [threads.submit(together.search, 'x' * (n + 1), n + 1) for n in range(10)]
        _until_waiting(queue, 10)
    assert [[hit.docid for hit in own.result()] for own in asked] == [
        [f'd{n}' for n in range(k)] for k in range(1, 11)
    ]
    assert sizes == [1, 8, 2] and [n for n, _ in ranker.asked] == [8, 2]


def test_an_error_is_its_own_requests():
    queue = Queue('test', 100, 8)
    together = Together(_Lengths(), queue, 'lengths')
    with _running(queue) as threads, _busy(queue, threads):
        asked = [threads.submit(together.search, text, 1) for text in ('x', FAULTY, 'y')]
        _until_waiting(queue, 3)
    assert [type(own.exception()) for own in asked] == [type(None), ZeroDivisionError, type(None)]


def test_a_job_that_comes_alone_does_not_wait():
    queue = Queue('test', 100, together=8, window=5.0)
    together = Together(_Lengths(), queue, 'lengths')
    start = time.monotonic()
    with _running(queue):
        for _ in range(3):
            together.rank([Query('a', 'x')], None, 1)
    assert time.monotonic() - start < 2


def test_a_reranking_job_leaves_no_thread_behind():
    """A thread that has computed keeps threads of OpenMP, which make those of the dense queue
    wait slowly.
    """
    queue = Queue('rerank', 10)
    with _running(queue):
        thread = queue.call(threading.current_thread)
        thread.join(30)
        assert not thread.is_alive()


def test_beyond_the_queue_jobs_are_refused_and_the_others_answered():
    queue = Queue('test', 2)
    with _running(queue) as threads:
        with _busy(queue, threads):
            others = [threads.submit(queue.call, lambda: 'answered') for _ in range(2)]
            _until_waiting(queue, 2)
            with pytest.raises(OverloadedError):
                queue.call(lambda: 'refused')
        assert [own.result() for own in others] == ['answered'] * 2


def test_a_request_that_nobody_waits_for_leaves_its_place():
    queue = Queue('test', 2)
    trace = RequestTrace()
    answered = []
    with _running(queue) as threads:
        with _busy(queue, threads):
            gone = threads.submit(queue.call, lambda: answered.append('gone'), trace)
            _until_waiting(queue, 1)
            trace.gone = True
            assert isinstance(gone.exception(5), GoneError) and len(queue.jobs) == 0
        queue.call(lambda: answered.append('stays'))
    assert answered == ['stays']


def test_a_queue_that_stops_finishes_what_waits():
    queue = Queue('test', 10)
    answered = []
    queue.start()
    with ThreadPoolExecutor(8) as threads:
        with _busy(queue, threads):
            for n in range(5):
                threads.submit(queue.call, lambda n=n: answered.append(n))
            _until_waiting(queue, 5)
        queue.stop()
    assert sorted(answered) == [0, 1, 2, 3, 4]


def test_a_job_that_would_wait_longer_than_it_is_given_is_refused_at_once():
    queue = Queue('test', 100, seconds=0.5)
    with _running(queue) as threads:
        for _ in range(3):
            queue.call(lambda: time.sleep(0.3))
        with _busy(queue, threads):
            waiting = [threads.submit(queue.call, lambda: 'answered') for _ in range(3)]
            _until_waiting(queue, 3)
            with pytest.raises(OverloadedError, match='of work wait already'):
                queue.call(lambda: None)
        assert [job.result() for job in waiting] == ['answered'] * 3


def test_it_is_tcps_so_that_answers_leave_at_once():
    """asyncio leaves Nagle's algorithm on for a socket whose protocol is not named: 40 ms an
    answer.
    """
    with listening('127.0.0.1', 0)[0] as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken():
    with listening('127.0.0.1', 0)[0] as listener:
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=f'port {port}'):
            listening('127.0.0.1', port)
    with pytest.raises(InputError, match='cannot listen'):
        listening('256.0.0.1', 8081)


def test_the_limit_of_open_files_is_raised():
    """Each connection is a file: a shell's usual 1024 would end at a thousand clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


RERANKED = '/v1/tiny/search?query=cat&rerank=duobert@12'
ABANDONED = [
    (RERANKED, b''),
    ('/v1/tiny/explain?query=cat&model=duobert&docid=d0&docid=d1', b''),
    (
        '/v1/tiny/batch',
        b'{"queries": [{"text": "cat"}, {"text": "old dog"}], "rerank": ["duobert@6"]}',
    ),
    ('/v1/tiny/compare', b'{"query": "cat", "a": {"rerank": ["monobert@6"]}}'),
]


async def _gone(app, target, body):
    """What the application sends to a client that has hung up when its request is whole."""
    path, _, query = target.partition('?')
    scope = {
        'type': 'http',
        'http_version': '1.1',
        'method': 'POST' if body else 'GET',
        'scheme': 'http',
        'path': path,
        'raw_path': path.encode(),
        'query_string': query.encode(),
        'root_path': '',
        'headers': [(b'content-type', b'application/json')] if body else [],
        'client': ('127.0.0.1', 1),
        'server': ('127.0.0.1', 8081),
    }
    messages = [{'type': 'http.request', 'body': body, 'more_body': False}]
    sent: list[dict] = []

    async def receive():
        return messages.pop() if messages else {'type': 'http.disconnect'}

    async def send(message):
        sent.append(message)

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return sent


@pytest.fixture
def busy(client):
    """A client of a service whose queue that reranks is busy until the test ends."""
    free = threading.Event()
    begun = threading.Event()
    rerank = client.app.state.service.queues['rerank']
    thread = threading.Thread(target=rerank.call, args=(lambda: begun.set() or free.wait(60),))
    thread.start()
    assert begun.wait(30)
    yield client
    free.set()
    thread.join()
    assert client.get(RERANKED).status_code == 200


def _emptied(queue):
    """Whether nothing waits in the queue after a second at most."""
    for _ in range(100):
        if len(queue.jobs) == 0:
            return True
        time.sleep(0.01)
    return False


def test_work_of_clients_that_have_gone_is_given_up(busy, caplog):
    caplog.set_level(logging.INFO)
    service = busy.app.state.service
    for target, body in ABANDONED:
        caplog.clear()
        assert busy.portal.call(_gone, busy.app, target, body) == [], target
        logged = [record for record in caplog.records if not record.name.startswith('httpx')]
        assert [record.levelname for record in logged] == ['INFO'], (
            caplog.text
        )  # no traceback: it is no fault
        assert json.loads(logged[0].message)['status'] == 499
        assert _emptied(service.queues['rerank']), target
    assert busy.get('/v1/tiny/search?query=cat').status_code == 200

"""Jobs in queues, searches that are batched, and requests whose clients go away."""

import asyncio
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from folders import wait_until

from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.searching import GoneError, RequestTrace

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

    def block():
        begun.set()
        free.wait(30)

    threads.submit(queue.call, block)
    assert begun.wait(30)
    yield
    free.set()


def _wait_until(queue, n):
    """Wait until n jobs wait in the queue."""
    wait_until(lambda: len(queue.waiting) == n)


class _Numbering(Ranker):
    """Gives every query the hits d0, d1, …; raises ZeroDivisionError for `FAULTY`."""

    def __init__(self):
        self.batch_sizes = []

    def _rank(self, topics, run, k, trace):
        self.batch_sizes.append(len(topics))
        if any(topic.text == FAULTY for topic in topics):
            raise ZeroDivisionError
        docids = [f'd{number}' for number in range(k)]
        return {topic.qid: Ranking(docids, [0.0] * k) for topic in topics}


def _search(ranker, question, k):
    """The hits of a request with one question."""
    return ranker.rank([Query('0', question)], None, k)['0']


def test_requests_that_wait_are_searched_together():
    sizes = []
    queue = JobQueue('test', 100, max_batch=8, on_batch=lambda _, size, __: sizes.append(size))
    numbering = _Numbering()
    ranker = BatchedRanker(numbering, queue, 'numbering')
    with _running(queue) as threads, _busy(queue, threads):
        for number in range(10):
            threads.submit(_search, ranker, f'query {number}', 3)
        _wait_until(queue, 10)
    assert numbering.batch_sizes == [8, 2]
    assert sizes == [1, 8, 2]  # the first is the job that kept the queue busy


def test_a_queue_goes_on_where_its_batches_cannot_be_counted(caplog):
    def fail(*_):
        raise OSError('no space')

    queue = JobQueue('test', 10, on_batch=fail)
    trace = RequestTrace()
    with _running(queue) as threads:
        jobs = [threads.submit(queue.call, lambda: 'answered', trace) for _ in range(2)]
        try:
            assert [job.result(5) for job in jobs] == ['answered'] * 2
        finally:
            trace.gone = True
    assert 'a batch of the queue test was not counted' in caplog.text


def test_of_requests_searched_together_each_gets_as_many_hits_as_it_wants():
    queue = JobQueue('test', 100, max_batch=8)
    ranker = BatchedRanker(_Numbering(), queue, 'numbering')
    with _running(queue) as threads, _busy(queue, threads):
        one = threads.submit(_search, ranker, 'x', 1)
        three = threads.submit(_search, ranker, 'y', 3)
        _wait_until(queue, 2)
    assert [hit.docid for hit in one.result()] == ['d0']
    assert [hit.docid for hit in three.result()] == ['d0', 'd1', 'd2']


def test_topics_of_one_request_keep_their_qids():
    queue = JobQueue('test', 100, max_batch=8)
    ranker = BatchedRanker(_Numbering(), queue, 'numbering')
    with _running(queue):
        run = ranker.rank([Query('b', 'x'), Query('a', 'x')], None, 2)
    assert list(run) == ['b', 'a']
    assert run['a'].docids == ('d0', 'd1')


def test_an_error_reaches_only_the_request_that_caused_it():
    queue = JobQueue('test', 100, max_batch=8)
    ranker = BatchedRanker(_Numbering(), queue, 'numbering')
    with _running(queue) as threads, _busy(queue, threads):
        before = threads.submit(_search, ranker, 'x', 1)
        faulty = threads.submit(_search, ranker, FAULTY, 1)
        after = threads.submit(_search, ranker, 'y', 1)
        _wait_until(queue, 3)
    assert isinstance(faulty.exception(), ZeroDivisionError)
    assert len(before.result()) == len(after.result()) == 1


def test_a_job_that_comes_alone_does_not_wait():
    queue = JobQueue('test', 100, max_batch=8, window=5.0)
    ranker = BatchedRanker(_Numbering(), queue, 'numbering')
    start = time.monotonic()
    with _running(queue):
        for _ in range(3):
            ranker.rank([Query('a', 'x')], None, 1)
    assert time.monotonic() - start < 2


def test_a_reranking_job_leaves_no_thread_behind():
    """A thread that has computed keeps threads of OpenMP, which make those of the dense queue
    wait slowly.
    """
    queue = JobQueue('rerank', 10)
    with _running(queue):
        thread = queue.call(threading.current_thread)
        thread.join(30)
        assert not thread.is_alive()


def test_beyond_the_queue_jobs_are_refused_and_the_others_answered():
    queue = JobQueue('test', max_waiting=2)
    with _running(queue) as threads:
        with _busy(queue, threads):
            others = [threads.submit(queue.call, lambda: 'answered') for _ in range(2)]
            _wait_until(queue, 2)
            with pytest.raises(OverloadedError):
                queue.call(lambda: 'refused')
        assert [job.result() for job in others] == ['answered', 'answered']


def test_a_request_that_nobody_waits_for_leaves_the_queue():
    queue = JobQueue('test', 2)
    trace = RequestTrace()
    answered = []
    with _running(queue) as threads:
        with _busy(queue, threads):
            gone = threads.submit(queue.call, lambda: answered.append('gone'), trace)
            _wait_until(queue, 1)
            trace.gone = True
            assert isinstance(gone.exception(5), GoneError)
            assert len(queue.waiting) == 0
        queue.call(lambda: answered.append('stays'))
    assert answered == ['stays']


def test_a_queue_that_stops_finishes_what_waits():
    queue = JobQueue('test', 10)
    answered = []
    queue.start()
    with ThreadPoolExecutor(8) as threads:
        with _busy(queue, threads):
            for number in range(5):
                threads.submit(queue.call, lambda number=number: answered.append(number))
            _wait_until(queue, 5)
        queue.stop()
    assert sorted(answered) == [0, 1, 2, 3, 4]


def test_a_job_that_would_wait_too_long_is_refused_at_once():
    queue = JobQueue('test', 100, max_seconds=0.5)
    with _running(queue) as threads:
        for _ in range(3):
            queue.call(lambda: time.sleep(0.3))
        with _busy(queue, threads):
            waiting = [threads.submit(queue.call, lambda: 'answered') for _ in range(3)]
            _wait_until(queue, 3)
            with pytest.raises(OverloadedError, match='of work wait already'):
                queue.call(lambda: None)
        assert [job.result() for job in waiting] == ['answered'] * 3


SEARCH = '/v1/tiny/search?query=cat&rerank=duobert@12'
ABANDONED = {
    'search': (SEARCH, None),
    'explain': ('/v1/tiny/explain?query=cat&model=duobert&docid=d0&docid=d1', None),
    'batch': (
        '/v1/tiny/batch',
        {'queries': [{'text': 'cat'}, {'text': 'old dog'}], 'rerank': ['duobert@6']},
    ),
    'compare': ('/v1/tiny/compare', {'query': 'cat', 'a': {'rerank': ['monobert@6']}}),
}


async def _call_and_hang_up(app, target, body):
    """What the application sends to a client that has hung up when its request is whole."""
    path, _, query = target.partition('?')
    content = b'' if body is None else json.dumps(body).encode()
    scope = {
        'type': 'http',
        'http_version': '1.1',
        'method': 'POST' if content else 'GET',
        'scheme': 'http',
        'path': path,
        'raw_path': path.encode(),
        'query_string': query.encode(),
        'root_path': '',
        'headers': [(b'content-type', b'application/json')],
        'client': ('127.0.0.1', 1),
        'server': ('127.0.0.1', 8081),
    }
    messages = [{'type': 'http.request', 'body': content, 'more_body': False}]
    sent = []

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
    queue = client.app.state.service.queues['rerank']
    with ThreadPoolExecutor(1) as threads, _busy(queue, threads):
        yield client


@pytest.mark.parametrize(('target', 'body'), ABANDONED.values(), ids=ABANDONED)
def test_work_of_a_client_that_has_gone_is_given_up(target, body, busy, caplog):
    caplog.set_level(logging.INFO)
    assert busy.portal.call(_call_and_hang_up, busy.app, target, body) == []
    (logged,) = [record for record in caplog.records if not record.name.startswith('httpx')]
    assert logged.levelname == 'INFO', caplog.text  # no traceback: it is no fault
    assert json.loads(logged.message)['status'] == 499
    _wait_until(busy.app.state.service.queues['rerank'], 0)


def test_while_reranking_waits_searches_are_answered(busy):
    assert busy.get('/v1/tiny/search?query=cat').status_code == 200


def test_after_a_client_has_gone_reranking_goes_on(client):
    queue = client.app.state.service.queues['rerank']
    with ThreadPoolExecutor(1) as threads, _busy(queue, threads):
        client.portal.call(_call_and_hang_up, client.app, SEARCH, None)
    assert client.get(SEARCH).status_code == 200

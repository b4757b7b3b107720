"""Queues: together what waits together, refusals beyond the queue, errors of one job alone, nothing lost at the end."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.searching import GoneError, RequestTrace
from pyserini_repbert.serve.together import Queue, Together


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
    free, begun = threading.Event(), threading.Event()
    first = threads.submit(queue.call, lambda: begun.set() or free.wait(30))
    assert begun.wait(30)
    yield first
    free.set()


def _until_waiting(queue, n):
    for _ in range(1000):
        if queue.length == n:
            return
        time.sleep(0.01)
    raise AssertionError(f'{queue.length} jobs wait, expected {n}')


class _Lengths(Ranker):
    """Ranks the numbers below a query's length; an empty query is an error of its own."""

    def __init__(self):
        self.asked: list[tuple[int, int]] = []

    def _rank(self, topics, run, k, trace):
        self.asked.append((len(topics), k))
        return {
            topic.qid: Ranking([f'd{len(topic.text) // len(topic.text) * n}' for n in range(k)], [0.0] * k)
            for topic in topics
        }


def test_requests_that_wait_are_searched_together_and_each_gets_its_own_hits():
    sizes: list[int] = []
    queue, ranker = Queue('test', 100, 8, on_batch=lambda _, size: sizes.append(size)), _Lengths()
    together = Together(ranker, queue, 'lengths')
    with _running(queue) as threads, _busy(queue, threads):
        asked = [threads.submit(together.search, 'x' * (n + 1), n + 1) for n in range(10)]
        _until_waiting(queue, 10)
    assert [[hit.docid for hit in own.result()] for own in asked] == [[f'd{n}' for n in range(k)] for k in range(1, 11)]
    assert sizes == [1, 8, 2] and [n for n, _ in ranker.asked] == [8, 2]


def test_an_error_is_its_own_requests():
    queue = Queue('test', 100, 8)
    together = Together(_Lengths(), queue, 'lengths')
    with _running(queue) as threads, _busy(queue, threads):
        asked = [threads.submit(together.search, text, 1) for text in ('x', '', 'y')]
        _until_waiting(queue, 3)
    assert [type(own.exception()) for own in asked] == [type(None), ZeroDivisionError, type(None)]


def test_a_job_that_comes_alone_does_not_wait():
    queue = Queue('test', 100, together=8, window=5.0)
    together, start = Together(_Lengths(), queue, 'lengths'), time.monotonic()
    with _running(queue):
        for _ in range(3):
            together.rank([Query('a', 'x')], None, 1)
    assert time.monotonic() - start < 2


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
    queue, trace, answered = Queue('test', 2), RequestTrace(), []
    with _running(queue) as threads:
        with _busy(queue, threads):
            gone = threads.submit(queue.call, lambda: answered.append('gone'), trace)
            _until_waiting(queue, 1)
            trace.gone = True
            assert isinstance(gone.exception(5), GoneError) and queue.length == 0
        queue.call(lambda: answered.append('stays'))
    assert answered == ['stays']


def test_a_queue_that_stops_finishes_what_waits():
    queue, answered = Queue('test', 10), []
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

from __future__ import annotations

import threading

import pytest

from pyserini_repbert.models.ahead import ahead


def test_items_come_in_order_and_no_more_are_made_than_may_wait():
    made, free = [], threading.Semaphore(0)

    def items():
        for number in range(20):
            made.append(number)
            free.release()
            yield number

    found = ahead(items(), depth=2)
    assert next(found) == 0
    for _ in range(4):  # 0 is taken, 1 and 2 wait, 3 is made and finds no room
        free.acquire()
    assert not free.acquire(timeout=0.3) and made == [0, 1, 2, 3]
    assert list(found) == list(range(1, 20))


def test_they_are_made_in_another_thread_that_ends_with_the_iterator():
    threads = []

    def items():
        while True:
            threads.append(threading.current_thread())
            yield 1

    found = ahead(items())
    next(found)
    found.close()
    assert threads[0] is not threading.current_thread() and not threads[0].is_alive()


def test_an_error_comes_where_its_item_would():
    def items():
        yield 1
        raise ValueError('no second')

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match='no second'):
        next(found)
    assert list(ahead([])) == []

import threading

import pytest

from pyserini_repbert.models.ahead import ahead
from pyserini_repbert.models.batching import in_batches


def test_items_come_in_order_and_one_is_made_ahead():
    numbers = []
    ready = threading.Semaphore(0)

    def items():
        for number in range(20):
            numbers.append(number)
            ready.release()
            yield number

    iterator = ahead(items())
    assert next(iterator) == 0
    for _ in range(2):
        ready.acquire()
    assert not ready.acquire(timeout=0.3) and numbers == [0, 1]
    assert list(iterator) == list(range(1, 20))


def test_an_error_comes_where_its_item_would():
    def items():
        yield 1
        raise ValueError('no second')

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match='no second'):
        next(found)
    assert list(ahead(iter([]))) == []


def test_closing_ends_the_work_after_a_batch():
    """As Ctrl-C does, while a thread runs a model over many batches."""
    begun = threading.Event()
    go_on = threading.Event()
    done = []

    def work(batch):
        done.append(batch)
        begun.set()
        go_on.wait()

    def items():
        yield 1
        in_batches(work, [[number] for number in range(1000)])

    iterator = ahead(items())
    assert next(iterator) == 1 and begun.wait(10)
    threading.Timer(0.2, go_on.set).start()
    iterator.close()
    assert done == [[0]]

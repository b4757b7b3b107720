"""Making items in a thread while those before are used. Nothing here needs PyTorch."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_END: Any = object()
# Of a thread of `ahead`: `closed` says whether its results are no longer wanted.
_thread = threading.local()


def is_unwanted() -> bool:
    """Whether this is a thread of `ahead` whose results are no longer wanted."""
    closed: Callable[[], bool] = getattr(_thread, 'closed', lambda: False)
    return closed()


def ahead(items: Generator[_Item] | Iterator[_Item], n: int = 1) -> Generator[_Item]:
    """The same items; a thread makes up to `n` of them while those before are used.

    An error in the thread is raised instead of the item. The thread ends, and a generator `items`
    is closed, when this generator is.
    """
    closed = threading.Event()
    with ThreadPoolExecutor(
        1, 'ahead', lambda: setattr(_thread, 'closed', closed.is_set)
    ) as thread:
        try:
            coming = deque(thread.submit(next, items, _END) for _ in range(n))
            item = coming.popleft().result()
            while item is not _END:
                coming.append(thread.submit(next, items, _END))
                yield item
                item = coming.popleft().result()
        finally:
            closed.set()
            thread.shutdown(cancel_futures=True)
            if isinstance(items, Generator):
                items.close()


def return_memory() -> None:
    """Return freed memory to the system, which takes 20 ms at most.

    Models read inputs of many shapes, and glibc keeps what each has freed: more than the models
    themselves take.
    """
    # C libraries other than glibc have no such function.
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
    if trim is not None:
        trim(0)

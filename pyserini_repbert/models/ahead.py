"""Work done ahead in a thread, so that its consumer waits less."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

_Item = TypeVar('_Item')
_TICK = 0.1  # seconds after which a thread that nobody needs any more sees it


def ahead(items: Iterable[_Item], depth: int = 1) -> Iterator[_Item]:
    """The same items, made in a thread: up to `depth` of them wait, and one more is being made.

    An error in the thread is raised in place of its item. The thread ends when the iterator is closed.
    """
    made: queue.Queue[tuple[bool, _Item | BaseException | None]] = queue.Queue(depth)
    closed = threading.Event()

    def put(last: bool, item: _Item | BaseException | None) -> None:
        while not closed.is_set():
            try:
                made.put((last, item), timeout=_TICK)
                return
            except queue.Full:
                continue

    def make() -> None:
        failed: BaseException | None = None
        try:
            for item in items:
                put(False, item)
                if closed.is_set():
                    return
        except BaseException as error:
            failed = error
        put(True, failed)

    thread = threading.Thread(target=make, name='ahead', daemon=True)
    thread.start()
    try:
        while True:
            last, item = made.get()
            if not last:
                yield item  # type: ignore[misc]
            elif isinstance(item, BaseException):
                raise item
            else:
                return
    finally:
        closed.set()
        thread.join()

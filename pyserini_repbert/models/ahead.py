"""Making items ahead of their consumer, in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_END: Any = object()


def ahead(items: Iterable[_Item], depth: int = 1) -> Iterator[_Item]:
    """The same items, made in a thread, at most `depth` + 1 of them before they are asked for.

    An error in the thread is raised in place of the item. The thread ends when the iterator is closed.
    """
    source = iter(items)
    made: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    room, closed = threading.Semaphore(depth + 1), threading.Event()

    def make() -> None:
        item: Any = None
        while item is not _END and room.acquire() and not closed.is_set():
            failed: BaseException | None = None
            try:
                item = next(source, _END)
            except BaseException as error:
                item, failed = _END, error
            made.put((item, failed))

    thread = threading.Thread(target=make, name='ahead', daemon=True)
    thread.start()
    try:
        while (found := made.get())[0] is not _END:
            room.release()
            yield found[0]
        if found[1] is not None:
            raise found[1]
    finally:
        closed.set()
        room.release()
        thread.join()

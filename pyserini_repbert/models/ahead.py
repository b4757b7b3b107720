"""Making items ahead of their consumer, in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_END: Any = object()


def ahead(items: Iterable[_Item]) -> Iterator[_Item]:
    """The same items; each is made in a thread while the one before it is used.

    An error in the thread is raised in place of the item. The thread ends when the iterator is closed.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, 'ahead') as thread:
        coming = thread.submit(next, source, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, source, _END)
            yield item

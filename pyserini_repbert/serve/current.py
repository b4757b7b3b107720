"""Which version of an index a request gets: the newest, and the same one until it is answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pyserini_repbert.errors import LostCollectionError
from pyserini_repbert.serve.indexes import ServedIndex


class CurrentIndex:
    """An index whose versions follow each other: a collection has one for each generation.

    A version is closed when a newer one has come and no request uses it.

    Attributes
    ----------
    newest : the version that new requests get
    problem : why its folder is not followed, in one line: it holds another collection, an earlier
        state, or none; None while all is well
    """

    def __init__(self, index: ServedIndex) -> None:
        self.newest = index
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._requests: Counter[ServedIndex] = Counter()

    @contextmanager
    def hold(self) -> Iterator[ServedIndex]:
        """A context in which the version that is the newest now stays open."""
        with self._lock:
            held = self.newest
            self._requests[held] += 1
        try:
            yield held
        finally:
            with self._lock:
                self._requests[held] -= 1
                is_used = self._requests[held] > 0
                if not is_used:
                    del self._requests[held]
                is_old = held is not self.newest
            if is_old and not is_used:
                held.close()

    def replace(self, index: ServedIndex) -> None:
        """Give new requests another version.

        Raises LostCollectionError for a version of another collection, which is closed.
        """
        before = self.newest
        try:
            before.index.check_successor(index.index)
        except LostCollectionError:
            index.close()
            raise
        with self._lock:
            self.newest = index
            is_used = before in self._requests
        if not is_used:
            before.close()

    def close(self) -> None:
        """Close the newest version, once requests have ended."""
        self.newest.close()

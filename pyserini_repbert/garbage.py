"""Suspending Python's cyclic garbage collector for work that makes millions of values and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """A context without cyclic garbage collection in the whole process; afterwards it is on again if it was before.

    The collector would visit every docid of every new ranking: an eighth of the time of reading or fusing runs.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

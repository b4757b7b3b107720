"""Whether a collection learns, how far it is, and the lock of the one program that learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyserini_repbert.adapt.judged_topics import N_MAPS
from pyserini_repbert.collection.adaptation import LEARNING_LOCK, judgments_of
from pyserini_repbert.errors import BusyError
from pyserini_repbert.folder_forms import refuse_link


def begin_learning(folder: Path) -> None:
    """Say that a program is about to learn, before it has loaded its model."""
    judgments_of(folder).set_progress({'state': 'running', 'done': 0, 'total': N_MAPS})


def learning_state(folder: Path, is_starting: bool = False) -> dict[str, Any]:
    """How far the last learning is: `state` is 'none', 'running', 'done' or 'failed'.

    While it runs, `done` and `total` count its steps; `error` says why it failed.

    Parameters
    ----------
    folder : of the collection
    is_starting : whether the caller knows of a program that began and may not hold the lock yet
    """
    state = {'state': 'none', 'done': 0, 'total': N_MAPS, 'error': None}
    state |= judgments_of(folder).progress()
    if state['state'] == 'running' and not is_starting and not _is_learning(folder):
        return state | {'state': 'failed', 'error': 'it was ended from outside: learn again'}
    return state


@contextmanager
def learning_lock(folder: Path) -> Iterator[None]:
    """Be the one program that learns. Raises BusyError if another one does."""
    from filelock import FileLock, Timeout

    refuse_link(folder / LEARNING_LOCK)
    lock = FileLock(folder / LEARNING_LOCK, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(
            f'another program is learning from the judgments of {folder}: wait until it has ended'
        ) from error
    try:
        yield
    finally:
        lock.release()


def _is_learning(folder: Path) -> bool:
    try:
        with learning_lock(folder):
            return False
    except BusyError:
        return True

"""How long processes live: this one may end soon, and those that it starts end with it."""

from __future__ import annotations

import os
import signal
import threading
import time

# Whether this process has said that it ends soon, and that it does not.
_ends_soon = False
_goes_on = False


def expect_to_end_soon() -> None:
    """Say that this process does one thing and ends, so whatever it starts need not run fast for
    long.
    """
    global _ends_soon
    _ends_soon = True


def expect_to_go_on() -> None:
    """Say that this process continues, even if one of its tasks says that it ends."""
    global _goes_on
    _goes_on = True


def is_to_end_soon() -> bool:
    """Whether this process has said that it ends soon."""
    return _ends_soon and not _goes_on


def end_with_parent(grace_seconds: float = 0.0) -> None:
    """End this process when its parent has ended, for example because it was killed.

    A process started by `multiprocessing` has a pipe to the one that started it. Every system
    closes this pipe at that one's end.

    Parameters
    ----------
    grace_seconds : that the process has to end after SIGTERM; 0: it ends at once
    """
    watching = threading.Thread(
        target=_wait_for_parent, args=(grace_seconds,), name='end-with-parent', daemon=True
    )
    watching.start()


def _wait_for_parent(grace_seconds: float) -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    if grace_seconds:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_seconds)
    os._exit(1)

"""Processes that this one starts: they end when it is gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time


def end_with_parent(grace_seconds: float = 0.0) -> None:
    """Let this process end when the one that started it is gone, killed say.

    A process started by `multiprocessing` has a pipe to the one that started it. Every system
    closes this pipe at that one's end.

    Parameters
    ----------
    grace_seconds : that the process has to end by itself, after SIGTERM; 0: it ends at once
    """
    watching = threading.Thread(
        target=_wait_for_parent, args=(grace_seconds,), name='end-with-parent', daemon=True
    )
    watching.start()


def _wait_for_parent(grace_seconds: float) -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    if grace_seconds:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_seconds)
    os._exit(1)

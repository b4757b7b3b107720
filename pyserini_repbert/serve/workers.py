"""Several processes that serve the same indexes at one address.

They accept connections from one listening socket. The files of indexes are mapped, so that all of
them share the memory; each has its own models.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from multiprocessing.context import SpawnContext, SpawnProcess
from types import FrameType
from typing import Any

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.extension import loaded
from pyserini_repbert.processes import end_with_parent
from pyserini_repbert.serve.settings import METRICS_FOLDER, ServeSettings


def check_workers(settings: ServeSettings, n: int) -> None:
    """Raises InputError for indexes that so many processes cannot serve, and for settings that an
    extension refuses.
    """
    for part in loaded('in_services'):
        part.check(settings, n)
    for alias, index in settings.indexes.items():
        if n > 1 and index.writable:
            raise InputError(
                f"index '{alias}' is writable: one process serves it", parameters=('workers',)
            )
        if n > 1 and index.ray:
            raise InputError(
                f"index '{alias}' is on a Ray cluster: one process serves it",
                parameters=('workers',),
            )


def serve_with_workers(
    settings: ServeSettings,
    listener: socket.socket,
    n: int,
    with_mcp: bool = False,
    log_file: str | None = None,
) -> None:
    """Serve in `n` processes until SIGTERM or Ctrl-C, then let each finish its requests.

    Parameters
    ----------
    settings : of the service
    listener : the socket, of `listen`
    n : processes
    with_mcp : also MCP tools, at /mcp
    log_file : as in `serve`

    Raises
    ------
    InputError : the indexes cannot be opened
    PyseriniRepbertError : a process ended unasked; the others are stopped
    """
    context = multiprocessing.get_context('spawn')
    failures = context.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix='pyserini-repbert-metrics-') as folder:
        os.environ[METRICS_FOLDER] = folder
        arguments = (settings, listener, n, with_mcp, log_file, failures)
        try:
            with _started(context, n, arguments) as workers, _stopped_by_signals(workers) as stop:
                connection.wait([worker.sentinel for worker in workers])
                was_stopped = stop.is_set()
        finally:
            del os.environ[METRICS_FOLDER]
    if not failures.empty():
        raise InputError(failures.get())
    if not was_stopped:
        raise PyseriniRepbertError(
            'a process that served has ended (out of memory?): the others were stopped'
        )


@contextlib.contextmanager
def _started(
    context: SpawnContext, n: int, arguments: tuple[Any, ...]
) -> Iterator[Sequence[SpawnProcess]]:
    """Processes that serve, which are told to stop at the end, and waited for."""
    workers = [context.Process(target=_serve, args=arguments) for _ in range(n)]
    for worker in workers:
        worker.start()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


@contextlib.contextmanager
def _stopped_by_signals(workers: Sequence[SpawnProcess]) -> Iterator[threading.Event]:
    """A context in which SIGTERM and Ctrl-C stop the workers; the event says that one came."""
    stopped = threading.Event()

    def stop(_: int, __: FrameType | None) -> None:
        stopped.set()
        for worker in workers:
            worker.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(
    settings: ServeSettings,
    listener: socket.socket,
    n: int,
    with_mcp: bool,
    log_file: str | None,
    failures: Any,
) -> None:
    """Serve in this process, one of `n`."""
    # Ctrl-C reaches all processes; the first one stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(settings.limits.stop_seconds)
    import torch

    from pyserini_repbert.serve.app import create_app
    from pyserini_repbert.serve.server import serve

    torch.set_num_threads(max(1, torch.get_num_threads() // n))
    app = create_app(settings, with_mcp)
    serve(app, settings, listener, log_file)
    if app.state.service.failure:
        failures.put(app.state.service.failure)

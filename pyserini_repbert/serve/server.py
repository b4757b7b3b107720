"""The process that serves an application: its socket, its limits, and uvicorn."""

from __future__ import annotations

import contextlib
import logging
import math
import resource
import socket
import sys
from typing import Any

from pyserini_repbert.commands.console import printable
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.serve.access import ENTRY, GONE, access_log
from pyserini_repbert.serve.deadline import make_protocol
from pyserini_repbert.serve.settings import ServeSettings

with needs('uvicorn', __name__, 'serve'):
    import uvicorn

_IDLE_SECONDS = 15  # that a connection is kept between requests
_BACKLOG = 2048  # connections that wait to be accepted
# Bytes of a request's line and headers; longer ones are refused before they are parsed.
_MAX_HEAD_BYTES = 256 << 10
# Characters of a path that a terminal shows.
_SHOWN_PATH = 200


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, opened before anything is loaded.

    Raises InputError for an unavailable address.
    """
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets with this protocol. Without it, answers one by one
    # take 40 ms more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, 'strerror', None) or error
        text = f'cannot listen at {host} port {port} ({reason}): choose another'
        raise InputError(text, parameters=('host', 'port')) from error
    return listener


def raise_file_limit() -> None:
    """Raise the limit of open files to the highest allowed: each connection takes one, and 1024
    are soon used up.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(
    app: Any, settings: ServeSettings, listener: socket.socket, log_file: str | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the requests in hand, within
    `limits.stop_seconds`.

    It stops if the indexes cannot be opened: `app.state.service.failure` says why.

    Parameters
    ----------
    app : of `create_app`
    settings : for their limits
    listener : of `listen`
    log_file : where requests are logged, as JSON lines; None: stderr; a terminal then shows only
        failed requests, in words
    """
    raise_file_limit()
    is_watched = log_file is None and not settings.log_queries and sys.stderr.isatty()
    log_requests(log_file, is_watched)
    config = uvicorn.Config(
        app,
        http=make_protocol(settings.limits.request_seconds),
        ws='none',
        access_log=False,
        server_header=False,
        log_config=None,
        log_level=logging.WARNING,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.limits.stop_seconds),
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        backlog=_BACKLOG,
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True

    app.state.stop = stop
    server.run(sockets=[listener])


def log_requests(log_file: str | None, is_watched: bool) -> None:
    """Log each request, as a JSON line.

    Parameters
    ----------
    log_file : where; None: stderr
    is_watched : whether a person reads the log, who sees only failed requests, in words
    """
    handler: logging.Handler = logging.StreamHandler()
    if log_file:
        handler = logging.FileHandler(log_file, encoding='utf-8')
    if is_watched:
        handler.addFilter(_has_failed)
        handler.setFormatter(_Words())
    access_log.addHandler(handler)
    access_log.setLevel(logging.INFO)
    access_log.propagate = False


def _has_failed(record: logging.LogRecord) -> bool:
    """Whether a request was refused, or the service failed.

    A missing progress is not a failure: the page may ask about a search that has just ended.
    """
    status: int = vars(record)[ENTRY]['status']
    return status >= 400 and status not in (404, GONE)


class _Words(logging.Formatter):
    """A request in a short line: 'GET /v1/mine/search: 400'."""

    def format(self, record: logging.LogRecord) -> str:
        entry = vars(record)[ENTRY]
        path = printable(entry['path'])[:_SHOWN_PATH]
        return f'{entry["method"]} {path}: {entry["status"]}'

"""Running a service with uvicorn: it finishes its requests before it stops."""

from __future__ import annotations

import contextlib
import math
import resource
import socket
import sys
from typing import Any

import uvicorn

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.settings import ServeSettings

_LONGEST_HEAD = 256 << 10  # bytes of a request's line and headers; longer ones are refused before they are parsed
_IDLE = 15  # seconds that a connection is kept between requests
_BACKLOG = 2048


def log_config(file: str | None) -> dict[str, Any]:
    """Settings for `logging.config`: requests as JSON lines to `file`, or to stderr; everything else to stderr."""
    to_stderr = {'class': 'logging.StreamHandler', 'stream': sys.stderr}
    requests: dict[str, Any] = {**to_stderr, 'formatter': 'bare'}
    if file is not None:
        requests = {'class': 'logging.FileHandler', 'filename': file, 'encoding': 'utf-8', 'formatter': 'bare'}
    return {
        'version': 1,
        'disable_existing_loggers': False,
        'formatters': {'bare': {'format': '%(message)s'}, 'line': {'format': '%(levelname)s: %(message)s'}},
        'handlers': {'stderr': {**to_stderr, 'formatter': 'line'}, 'requests': requests},
        'loggers': {
            'pyserini_repbert.serve.requests': {'handlers': ['requests'], 'level': 'INFO', 'propagate': False},
            'uvicorn': {'handlers': ['stderr'], 'level': 'WARNING', 'propagate': False},
        },
    }


def listening(host: str, port: int) -> list[socket.socket]:
    """A listening socket, opened before anything is loaded. Raises InputError for an address that cannot be had."""
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets with this protocol; without it, answers one by one take 40 ms more
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        return [listener]
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, 'strerror', None) or error
        raise InputError(
            f'cannot listen at {host} port {port} ({reason}): choose another', parameters=('host', 'port')
        ) from error


def raise_file_limit() -> None:
    """Raise the limit of open files to the highest allowed: each connection takes one, and 1024 are soon used up."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(app: Any, settings: ServeSettings, sockets: list[socket.socket], log_file: str | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the requests in hand, within `limits.stop_seconds`.

    It stops by itself if the indexes cannot be opened: `app.state.service.failure` says why.

    Parameters
    ----------
    log_file : where requests are logged; default: stderr
    """
    raise_file_limit()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http='h11',
            ws='none',
            access_log=False,
            server_header=False,
            log_config=log_config(log_file),
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=math.ceil(settings.limits.stop_seconds),
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            backlog=_BACKLOG,
        )
    )
    app.state.stop = lambda: setattr(server, 'should_exit', True)
    server.run(sockets=sockets)

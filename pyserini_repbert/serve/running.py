"""Running a service with uvicorn: it answers what it took, and refuses what is no HTTP with one JSON error."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import sys
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.settings import ServeSettings

_LONGEST_HEAD = 256 << 10  # bytes of a request's line and headers: longer ones are refused before they are understood
_FIRST_BYTES = 30.0  # seconds that a new connection may be silent
_IDLE = 15  # seconds that a connection is kept between requests
_BACKLOG = 2048


class JsonH11Protocol(H11Protocol):
    """uvicorn's protocol, whose own refusals are JSON too; a connection that never asks is closed."""

    def connection_made(self, transport: Any) -> None:
        """Close the connection later unless it asks for something."""
        super().connection_made(transport)
        self._silent = self.loop.call_later(_FIRST_BYTES, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the closing."""
        self._silent.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read as HTTP."""
        body = json.dumps({'error': f'{msg.rstrip(".")}: not HTTP, or an address or headers that are too long'})
        headers = [(b'content-type', b'application/json'), (b'connection', b'close')]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b'Bad Request'),
            h11.Data(data=body.encode()),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        self.transport.close()


def log_config(file: str | None) -> dict[str, Any]:
    """Python's logging settings: requests as JSON lines into `file`, or to stderr; everything else to stderr."""
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
    """Listening sockets, before anything is loaded. Raises InputError for an address that is taken or invalid."""
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    # asyncio sends answers without Nagle's delay, 40 ms for one by one, only on sockets that say they are TCP's
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
    """Raise the limit of open files to the highest allowed: each connection is one, and 1024 are soon used."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(app: Any, settings: ServeSettings, sockets: list[socket.socket], log_file: str | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish what was taken, within the limit for it.

    It ends at once where the indexes cannot be opened: `app.state.service.failure` says why.
    """
    raise_file_limit()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=JsonH11Protocol,
            ws='none',
            access_log=False,
            server_header=False,
            log_config=log_config(log_file),
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=int(settings.limits.stop_seconds),
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            backlog=_BACKLOG,
        )
    )
    app.state.stop = lambda: setattr(server, 'should_exit', True)
    server.run(sockets=sockets)

"""Connections whose clients take too long to send a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pyserini_repbert.errors import needs
from pyserini_repbert.serve.http_errors import error_body

with needs('uvicorn', __name__, 'serve'):
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol


class DeadlineProtocol(H11Protocol):
    """HTTP/1.1 with a time for each request to come in whole, header and body.

    uvicorn has a time for connections between requests only.
    """

    request_seconds = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Read on; the time goes on unless the request is complete."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that was answered unread, or of a request that came early."""
        super().on_response_complete()
        # between requests, the time of idle connections counts
        if self.conn.their_state is h11.SEND_BODY:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.request_seconds, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer_late()
        self.transport.close()

    def _answer_late(self) -> None:
        message = f'the request was not complete within {self.request_seconds:g} s: send it again'
        # The address is not known before the header is complete.
        path = self.scope['path'] if self.conn.their_state is h11.SEND_BODY else ''
        body = json.dumps(error_body(path, 408, message)).encode()
        headers = [
            ('content-type', 'application/json'),
            ('content-length', str(len(body))),
            ('connection', 'close'),
        ]
        events: list[Any] = [
            h11.Response(status_code=408, headers=headers, reason=b'Request Timeout'),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b'')


def make_protocol(request_seconds: float) -> type[DeadlineProtocol]:
    """The protocol of a server whose clients have so many seconds for a request."""
    return type('DeadlineProtocol', (DeadlineProtocol,), {'request_seconds': request_seconds})

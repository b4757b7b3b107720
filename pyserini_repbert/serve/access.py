"""The middleware of every request: checks of host, key, size and encoding; request id, headers and
access log.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyserini_repbert.serve.hosts import check_host, check_origin
from pyserini_repbert.serve.http_errors import error_body, json_response
from pyserini_repbert.serve.metrics import Metrics
from pyserini_repbert.serve.settings import ServeSettings

logger = logging.getLogger(__name__)
access_log = logging.getLogger('pyserini_repbert.serve.requests')

_REQUEST_ID = b'x-request-id'
_CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; "
    b"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY_HEADERS = (
    (b'content-security-policy', _CONTENT_SECURITY_POLICY),
    (b'x-content-type-options', b'nosniff'),
    (b'referrer-policy', b'no-referrer'),
    (b'cross-origin-opener-policy', b'same-origin'),
    # Browsers check each script for changes, so that two releases do not mix.
    (b'cache-control', b'no-cache'),
)
_MCP = '/mcp'
_GUARDED = ('/v1/', '/v2/', _MCP, '/metrics')  # addresses that need a key, if the service has keys
_CLIENTS_ID = re.compile(r'[A-Za-z0-9._-]{1,64}')
# The attribute of a log record that has what its line says.
ENTRY = 'request_entry'
GONE = 499  # logged for a client that went away before there was an answer


@dataclass(frozen=True)
class _Head:
    """What the headers of a request say.

    Attributes
    ----------
    headers : by name in lower case
    request_id : the client's, or a new one
    key : the client's key; empty if none was given
    """

    headers: dict[bytes, bytes]
    request_id: str
    key: str

    @classmethod
    def of(cls, scope: Scope) -> _Head:
        headers = {name.lower(): value for name, value in scope['headers']}
        request_id = headers.get(_REQUEST_ID, b'').decode('latin-1')
        if not _CLIENTS_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        key = headers.get(b'x-api-key', b'').decode('latin-1')
        if not key:
            authorization = headers.get(b'authorization', b'').decode('latin-1').strip()
            scheme, _, token = authorization.partition(' ')
            if scheme.lower() == 'bearer':
                key = token
        return cls(headers, request_id, key.strip())

    def text(self, name: bytes) -> str:
        """A header; empty if there is none."""
        return self.headers.get(name, b'').decode('latin-1')


class _Sender:
    """Sends an answer with the headers of every answer, and remembers its status.

    Attributes
    ----------
    status : of the answer; 0 before it begins
    """

    def __init__(self, send: Send, request_id: str) -> None:
        self.status = 0
        self._send = send
        self._headers = (*SECURITY_HEADERS, (_REQUEST_ID, request_id.encode()))

    async def __call__(self, message: Message) -> None:
        if message['type'] == 'http.response.start':
            self.status = message['status']
            message['headers'] = [*message.get('headers', ()), *self._headers]
        await self._send(message)


class Gate:
    """The outermost middleware of the application; everything but HTTP passes unchanged."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app = app
        self._settings = settings
        self._metrics = metrics
        self._reading_keys = [_digest(key) for key in settings.api_keys]
        self._writing_keys = [_digest(key) for key in settings.write_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope['type'] != 'http':
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        head = _Head.of(scope)
        state = scope.setdefault('state', {})
        state['request_id'] = head.request_id
        state['may_write'] = _is_one_of(head.key, self._writing_keys)
        sender = _Sender(send, head.request_id)
        try:
            answer: ASGIApp = self._refusal(scope, head) or self.app
            await answer(scope, self._bounded(receive), sender)
        except ClientDisconnect:
            # No client waits for an answer, and nothing failed.
            pass
        except Exception:
            logger.exception('request %s failed', head.request_id)
            if sender.status:
                raise
            message = f'the service failed: its log says why (request {head.request_id})'
            await _error(scope, 500, message)(scope, receive, sender)
        finally:
            seconds = time.perf_counter() - start
            self._record(scope, head, status=sender.status or GONE, seconds=seconds)

    def _refusal(self, scope: Scope, head: _Head) -> Response | None:
        """The answer to a request that is not let in; None if it is."""
        return (
            self._refuse_host(scope, head)
            or _refuse_framing(scope, head)
            or self._refuse_length(scope, head)
            or _refuse_encoding(scope)
            or self._refuse_key(scope, head)
        )

    def _refuse_host(self, scope: Scope, head: _Head) -> Response | None:
        allowed = self._settings.allowed_hosts
        refused = check_host(head.text(b'host'), allowed)
        if refused is None and scope['path'].startswith(_MCP):
            refused = check_origin(head.text(b'origin'), allowed)
        if refused is None:
            return None
        return _error(scope, refused.status, refused.message)

    def _refuse_length(self, scope: Scope, head: _Head) -> Response | None:
        length = head.headers.get(b'content-length', b'')
        if length.isdigit() and int(length) > self._settings.limits.body_bytes:
            return _error(scope, 413, self._too_long())
        return None

    def _refuse_key(self, scope: Scope, head: _Head) -> Response | None:
        if not self._reading_keys or not scope['path'].startswith(_GUARDED):
            return None
        if scope['state']['may_write'] or _is_one_of(head.key, self._reading_keys):
            return None
        what = 'the one given is refused' if head.key else 'none was given'
        return _error(scope, 401, f'this service takes a key, {what}')

    def _bounded(self, receive: Receive) -> Receive:
        """`receive`, which raises for a body above the limit, whatever the headers say."""
        most = self._settings.limits.body_bytes
        seen = 0

        async def receive_bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get('body', b''))
            if seen > most:
                raise HTTPException(413, self._too_long())
            return message

        return receive_bounded

    def _too_long(self) -> str:
        return f'the body is too long, at most {self._settings.limits.body_bytes:,} bytes are read'

    def _record(self, scope: Scope, head: _Head, status: int, seconds: float) -> None:
        """Count a request, and log it."""
        self._metrics.count_request(_route(scope), scope['method'], status, seconds)
        now = datetime.now(UTC).isoformat(timespec='milliseconds')
        client = scope.get('client') or ['']
        entry: dict[str, Any] = {
            'ts': now.replace('+00:00', 'Z'),
            'event': 'request',
            'request_id': head.request_id,
            'client': client[0],
            'method': scope['method'],
            'path': scope['path'],
            'status': status,
            'latency_ms': round(1000 * seconds, 3),
            'key_id': _digest(head.key).hex()[:12] if head.key else None,
        }
        generation = scope.get('state', {}).get('generation')
        if generation is not None:
            entry['generation'] = generation
        if self._settings.log_queries:
            entry['query'] = (scope.get('query_string') or b'').decode('latin-1')[:2000]
        access_log.info(json.dumps(entry), extra={ENTRY: entry})


def _refuse_framing(scope: Scope, head: _Head) -> Response | None:
    """Refuse a request with two lengths, because a proxy may have read the other one (RFC 9112
    6.1).

    The connection is closed, as what follows on it may be part of this request.
    """
    if not {b'content-length', b'transfer-encoding'} <= head.headers.keys():
        return None
    message = 'Content-Length and Transfer-Encoding were given: send one of them'
    refused = _error(scope, 400, message)
    refused.headers['connection'] = 'close'
    return refused


def _refuse_encoding(scope: Scope) -> Response | None:
    address = (scope.get('raw_path') or b'') + b'?' + scope['query_string']
    try:
        unquote_to_bytes(address).decode('utf-8')
    except UnicodeDecodeError:
        message = 'the address is not valid UTF-8: encode it as UTF-8 with percent codes'
        return _error(scope, 400, message)
    return None


def _route(scope: Scope) -> str:
    """The path of a request's route, with the names of parameters; 'page' for a file of the page,
    'other' for an unknown address.
    """
    path: str | None = getattr(scope.get('route'), 'path', None)
    if path:
        return path
    return 'page' if scope.get('endpoint') else 'other'


def _is_one_of(key: str, digests: Sequence[bytes]) -> bool:
    """Whether a key has one of these digests.

    Every one is compared, in a time that does not depend on the key.
    """
    digest = _digest(key)
    accepted = [hmac.compare_digest(digest, other) for other in digests]
    return any(accepted)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode('utf-8', 'replace')).digest()


def _error(scope: Scope, status: int, message: str) -> Response:
    headers = {}
    if status == 401:
        headers['www-authenticate'] = 'Bearer'
    return json_response(error_body(scope['path'], status, message), status, headers)

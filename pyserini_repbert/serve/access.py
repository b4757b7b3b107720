"""The middleware of every request: checks of key, size and encoding; request id, headers, access
log and counters.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyserini_repbert.errors import needs
from pyserini_repbert.serve.hosts import check_host, check_origin
from pyserini_repbert.serve.searching import Step
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.together import Queue

with needs('prometheus_client', __name__, 'serve'):
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        generate_latest,
    )

logger = logging.getLogger(__name__)
access_log = logging.getLogger('pyserini_repbert.serve.requests')

_REQUEST_ID = b'x-request-id'
SECURITY = (
    (
        b'content-security-policy',
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; "
        b"manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (b'x-content-type-options', b'nosniff'),
    (b'referrer-policy', b'no-referrer'),
    (b'cross-origin-opener-policy', b'same-origin'),
    (
        b'cache-control',
        b'no-cache',
    ),  # browsers check each script for changes, so that two releases do not mix
)
_OF_MCP = '/mcp'
_GUARDED = ('/v1/', _OF_MCP, '/metrics')  # addresses that need a key, if the service has keys
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SIZES = (1, 2, 4, 8, 16, 32, 64)
_METHODS = ('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')
_OWN_ID = re.compile(r'[A-Za-z0-9._-]{1,64}')


class Metrics:
    """Counters in a registry of their own, so that several services can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        to = {'namespace': 'pyserini_repbert', 'registry': self.registry}
        self._requests = Counter(
            'requests', 'Requests answered', ['route', 'method', 'status'], **to
        )
        self._seconds = Histogram(
            'request_seconds', 'Time to an answer', ['route'], buckets=_SECONDS, **to
        )
        self._batches = Histogram(
            'batch_size', 'Jobs done together', ['lane'], buckets=_SIZES, **to
        )
        self._steps = Histogram(
            'step_seconds', 'Time of a step of an answer', ['step'], buckets=_SECONDS, **to
        )
        self._inferences = Counter('inferences', 'Model inputs', ['step'], **to)
        self._waiting = Gauge('waiting', 'Jobs that wait', ['lane'], **to)
        ProcessCollector(registry=self.registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request; status 0, of a client that went away before an answer, counts as 499."""
        known = method if method in _METHODS else 'other'  # a client may send any word
        self._requests.labels(route, known, str(status or 499)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, queue: str, size: int) -> None:
        """Count a batch of a queue."""
        self._batches.labels(queue).observe(size)

    def step(self, step: Step) -> None:
        """Count a step of an answer; a stage counts under its reranker's name, whatever its
        depth.
        """
        name = step.step.partition('@')[0]
        self._steps.labels(name).observe(step.ms / 1000)
        if step.inferences:
            self._inferences.labels(name).inc(step.inferences)

    def response(self, queues: Iterable[Queue]) -> Response:
        """All counters, and the lengths of the queues, in Prometheus's format."""
        for queue in queues:
            self._waiting.labels(queue.name).set(len(queue.jobs))
        return Response(generate_latest(self.registry), media_type='text/plain; version=0.0.4')


class Gate:
    """The outermost middleware of the application; everything but HTTP passes unchanged."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app = app
        self._settings = settings
        self._metrics = metrics
        self._keys = [_digest(key) for key in settings.api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope['type'] != 'http':
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = {key.lower(): value for key, value in scope['headers']}
        request_id = headers.get(_REQUEST_ID, b'').decode('latin-1')
        if not _OWN_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        scope.setdefault('state', {})['request_id'] = request_id
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message['type'] == 'http.response.start':
                status = message['status']
                added = (*SECURITY, (_REQUEST_ID, request_id.encode()))
                message['headers'] = [*message.get('headers', ()), *added]
            await send(message)

        kind, _, token = headers.get(b'authorization', b'').decode('latin-1').strip().partition(' ')
        bearer = token if kind.lower() == 'bearer' else ''
        key = (headers.get(b'x-api-key', b'').decode('latin-1') or bearer).strip()
        try:
            app: ASGIApp = self._refused(scope, headers, key) or self.app
            await app(scope, self._bounded(receive), sending)
        except ClientDisconnect:
            pass  # no client to answer, and no failure: the access log says 499
        except Exception:
            logger.exception('request %s failed', request_id)
            if status:
                raise
            await _error(500, f'the service failed: its log says why (request {request_id})')(
                scope, receive, sending
            )
        finally:
            self._note(scope, status, time.perf_counter() - start, request_id, key)

    def _refused(self, scope: Scope, headers: dict[bytes, bytes], key: str) -> Response | None:
        """The answer to a request that is not let in."""
        allowed = self._settings.allowed_hosts
        refused = check_host(headers.get(b'host', b'').decode('latin-1'), allowed)
        if refused is None and scope['path'].startswith(_OF_MCP):
            refused = check_origin(headers.get(b'origin', b'').decode('latin-1'), allowed)
        if refused is not None:
            return _error(refused.status, refused.message)
        length = headers.get(b'content-length', b'')
        if length.isdigit() and int(length) > self._settings.limits.body_bytes:
            return _error(413, self._too_long())
        try:
            unquote_to_bytes((scope.get('raw_path') or b'') + b'?' + scope['query_string']).decode(
                'utf-8'
            )
        except UnicodeDecodeError:
            return _error(
                400, 'the address is not valid UTF-8: encode it as UTF-8 with percent codes'
            )
        # every key is compared, in a time that does not depend on the one given
        accepted = [hmac.compare_digest(_digest(key), digest) for digest in self._keys]
        if self._keys and scope['path'].startswith(_GUARDED) and not any(accepted):
            return _error(
                401,
                f'this service takes a key, '
                f'{"the one given is refused" if key else "none was given"}',
            )
        return None

    def _bounded(self, receive: Receive) -> Receive:
        """`receive`, which raises for a body above the limit, whatever the headers say."""
        most = self._settings.limits.body_bytes
        seen = 0

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get('body', b''))
            if seen > most:
                raise HTTPException(413, self._too_long())
            return message

        return receiving

    def _too_long(self) -> str:
        return f'the body is too long, at most {self._settings.limits.body_bytes:,} bytes are read'

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str, key: str) -> None:
        path = getattr(scope.get('route'), 'path', None) or (
            'page' if scope.get('endpoint') else 'other'
        )
        self._metrics.request(path, scope['method'], status, seconds)
        entry: dict[str, Any] = {
            'ts': datetime.now(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z'),
            'event': 'request',
            'request_id': request_id,
            'client': (scope.get('client') or [''])[0],
            'method': scope['method'],
            'path': scope['path'],
            'status': status or 499,  # the client went away before there was an answer
            'latency_ms': round(1000 * seconds, 3),
            'key_id': _digest(key).hex()[:12] if key else None,
        }
        if self._settings.log_queries:
            entry['query'] = (scope.get('query_string') or b'').decode('latin-1')[:2000]
        access_log.info(json.dumps(entry))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode('utf-8', 'replace')).digest()


def _error(status: int, message: str) -> Response:
    return JSONResponse(
        {'error': message}, status, {'www-authenticate': 'Bearer'} if status == 401 else None
    )

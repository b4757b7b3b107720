"""One request to an OpenAI-style server, by the package `openai`, which tries again what may pass.

The settings differ from the package's defaults: an answer has a limit of bytes, all attempts share
one deadline, no redirect is followed, an address on this machine is reached without a proxy, and
the server learns the request and the key, but nothing about this machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.parse
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from openai import AsyncOpenAI

from pyserini_repbert.data.values import parse_json

TRIES = 4
_SILENT_SECONDS = 120.0  # without a byte
_SECONDS = 600.0  # for all tries together
MOST_BYTES = 4 << 20  # of an answer
# What a request says; all else would be of this machine.
_HEADERS = ('accept', 'connection', 'content-length', 'content-type', 'host')
# The status of an error within a response that says 200.
_BAD_GATEWAY = 502


class TooLongError(Exception):
    """An answer has more than `MOST_BYTES`, or says that it is compressed."""


def post(address: str, key: str, body: Mapping[str, Any]) -> bytes:
    """The response to a chat completion.

    Parameters
    ----------
    address : of the server, as http://127.0.0.1:8000/v1
    key : '' sends none
    body : of the request

    Raises the errors of `openai`, TimeoutError after `_SECONDS`, TooLongError.
    """
    exchange = _exchange(address, key, body)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(exchange)
    # A notebook already runs an event loop.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, exchange).result()


async def _exchange(address: str, key: str, body: Mapping[str, Any]) -> bytes:
    transport = _BoundedTransport(key, proxy=proxy_of(address))
    http_client = httpx2.AsyncClient(transport=transport, follow_redirects=False)
    client = AsyncOpenAI(
        # The transport sends the key, if there is one.
        api_key='none',
        base_url=address,
        max_retries=TRIES - 1,
        timeout=_SILENT_SECONDS,
        http_client=http_client,
    )
    async with client, asyncio.timeout(_SECONDS):
        values: dict[str, Any] = dict(body)
        response = await client.chat.completions.with_raw_response.create(**values)
        content: bytes = response.http_response.content
        return content


def proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address; None for one of this machine."""
    parts = urllib.parse.urlsplit(address)
    host = parts.hostname or ''
    if _is_this_machine(host) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get('all')


def _is_this_machine(host: str) -> bool:
    if host == 'localhost' or host.endswith('.localhost'):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Sends requests without what the package adds, and reads whole answers of bounded size."""

    def __init__(self, key: str, proxy: str | None) -> None:
        super().__init__(proxy=proxy)
        self._key = key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        headers['accept-encoding'] = 'identity'
        headers['user-agent'] = 'pyserini_repbert'
        if self._key:
            headers['authorization'] = f'Bearer {self._key}'
        bare = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=request.content,
            extensions=request.extensions,
        )
        response = await super().handle_async_request(bare)
        try:
            content = await _read(response)
        finally:
            await response.aclose()
        status = response.status_code
        if status == httpx2.codes.OK:
            status = _status_within(content)
        return httpx2.Response(status, headers=_waits(response.headers), content=content)


async def _read(response: httpx2.Response) -> bytes:
    """The body of a response. Raises TooLongError."""
    if response.headers.get('content-encoding', 'identity') != 'identity':
        raise TooLongError
    blocks = []
    n_bytes = 0
    async for block in response.aiter_raw():
        n_bytes += len(block)
        if n_bytes > MOST_BYTES:
            raise TooLongError
        blocks.append(block)
    return b''.join(blocks)


def _waits(headers: httpx2.Headers) -> dict[str, str]:
    """The headers that say how long a server asks to wait."""
    names = ('retry-after', 'retry-after-ms')
    return {name: headers[name] for name in names if name in headers}


def _status_within(content: bytes) -> int:
    """The status that a response has which says 200, and may be an error."""
    try:
        response = parse_json(content)
    except ValueError:
        return httpx2.codes.OK
    if not isinstance(response, dict) or response.get('choices') or not response.get('error'):
        return httpx2.codes.OK
    error = response['error']
    code = error.get('code') if isinstance(error, dict) else None
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return _BAD_GATEWAY

"""What routes share: JSON responses, refused parameters, progress, and an end when the client goes away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, get_origin

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.settings import Limits

Progress = dict[str, list[tuple[str, int, int]]]  # request id -> [(stage, inputs done, inputs in all)] or []
_Result = TypeVar('_Result')
_ASKED_AGAIN = 0.25  # seconds between checks that a client is still connected


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response in UTF-8, in ASCII with escapes where a string holds lone surrogates."""
    try:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode()
    except UnicodeEncodeError:
        body = json.dumps(value, allow_nan=False).encode()
    return Response(body, status, headers, 'application/json')


class StrictRoute(APIRoute):
    """A route that refuses a body in which an object gives a field twice: json.loads takes the last."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route's requests."""
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


class _StrictRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise HTTPException(422, f"the body gives '{ascii(twice)[1:-1][:60]}' twice: give each field once")
    return value


async def known_parameters(request: Request) -> None:
    """Raises InputError for a query parameter that is unknown, or repeated though not a list: FastAPI ignores both."""
    lists = {own.alias: get_origin(own.field_info.annotation) is list for own in _query_parameters(request)}
    known = list(lists)
    for name in request.query_params:
        if name not in known:
            raise InputError(
                f"parameter '{name[:60]}' is unknown{did_you_mean(name, known)}: expected {', '.join(known) or 'none'}"
            )
        if len(request.query_params.getlist(name)) > 1 and not lists[name]:
            raise InputError(f"parameter '{name}' was given more than once: give it once")


def _query_parameters(request: Request) -> Sequence[Any]:
    found: Sequence[Any] = request.scope['route'].dependant.query_params
    return found


def teller(progress: Progress, request: Request) -> Callable[[str, int, int], None]:
    """A progress callback for the stages of a request; calls after the request's end have no effect."""

    now = progress[request.state.request_id] = []

    def tell(stage: str, done: int, total: int) -> None:
        now[:] = [(stage, done, total)]

    return tell


async def while_there(request: Request, work: Awaitable[_Result], progress: Progress) -> _Result:
    """The result of `work`, which is cancelled when the client goes away: then raises ClientDisconnect."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=_ASKED_AGAIN)
            if done:
                return task.result()
            if await request.is_disconnected():
                task.cancel()
                await asyncio.wait({task})
                raise ClientDisconnect
    finally:
        task.cancel()
        progress.pop(request.state.request_id, None)


def hits_of(body: Any, limits: Limits) -> int:
    """The hits that a body asks for; if it does not say, its default or the service's limit, whichever is less."""
    asked: int = body.hits
    return asked if 'hits' in body.model_fields_set else min(asked, limits.hits)

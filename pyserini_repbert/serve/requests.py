"""What routes share: refused parameters, and an end when the client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, get_origin

from fastapi import Request
from starlette.requests import ClientDisconnect

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

Progress = dict[str, RequestTrace]  # by request id
_Result = TypeVar('_Result')
_LOOKED_AGAIN = 0.25  # seconds between checks that a client is still connected


async def known_parameters(request: Request) -> None:
    """Raises InputError for a query parameter that is unknown, or repeated though not a list: FastAPI ignores both."""
    parameters = request.scope['route'].dependant.query_params
    lists = {own.alias: get_origin(own.field_info.annotation) is list for own in parameters}
    for name in request.query_params:
        if name not in lists:
            near, known = did_you_mean(name, list(lists)), ', '.join(lists) or 'none'
            raise InputError(f"parameter '{name[:60]}' is unknown{near}: expected {known}")
        if len(request.query_params.getlist(name)) > 1 and not lists[name]:
            raise InputError(f"parameter '{name}' was given more than once: give it once")


async def answered(
    request: Request,
    service: Service,
    work: Callable[[RequestTrace], _Result],
    reranks: bool = False,
    progress: Progress | None = None,
) -> _Result:
    """`service.run`, ended when the client goes away: then raises ClientDisconnect.

    Parameters
    ----------
    progress : where the request's trace is while it is answered
    """
    trace = RequestTrace()
    requests = {} if progress is None else progress
    requests[request.state.request_id] = trace
    task = asyncio.ensure_future(service.run(work, reranks, trace))
    try:
        while not (await asyncio.wait({task}, timeout=_LOOKED_AGAIN))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        del requests[request.state.request_id]

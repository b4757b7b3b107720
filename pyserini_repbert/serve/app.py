"""The ASGI application: routes, errors as JSON objects, health, metrics, the OpenAPI document and the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.errors import (
    BusyError,
    ClusterError,
    InputError,
    MismatchError,
    MissingDependencyError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
    install_extra,
)
from pyserini_repbert.serve.refusals import NotFoundError, NotReadyError, OverloadedError, TooLateError

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.responses import HTMLResponse, Response
except ModuleNotFoundError as error:
    raise MissingDependencyError.of(error.name or 'fastapi', __name__, install_extra('serve')) from error

from pyserini_repbert.evaluate.pages import page
from pyserini_repbert.serve.access import Gate
from pyserini_repbert.serve.metrics import CONTENT_TYPE, Metrics
from pyserini_repbert.serve.page_files import PageFiles
from pyserini_repbert.serve.requests import json_response
from pyserini_repbert.serve.routes.router import make_router
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings

logger = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[PyseriniRepbertError], int], ...] = (
    (OverloadedError, 429),
    (NotReadyError, 503),
    (TooLateError, 504),
    (NotFoundError, 404),
    (UnknownNameError, 404),
    (InputError, 400),
    (MismatchError, 400),
    (MissingResourceError, 404),
    (BusyError, 503),
    (ClusterError, 503),
)
_PROBED = ['GET', 'HEAD']  # load balancers ask by HEAD
_TRY_AGAIN = (OverloadedError, NotReadyError)
_CUT = 300  # characters of a refused value that its error repeats


def create_app(settings: ServeSettings, with_mcp: bool = False) -> FastAPI:
    """The ASGI application of a service; it opens its indexes in the background once it is started.

    `app.state.service` is the service, `app.state.metrics` its counters. `with_mcp` adds MCP tools at /mcp.

    Raises
    ------
    UnknownNameError
        for a reranker of the settings that is neither in the catalog nor a folder
    MissingDependencyError
        for `with_mcp` without fastmcp
    """
    metrics = Metrics()
    service = Service(settings, metrics.batch, metrics.step)
    tools = None
    if with_mcp:
        from pyserini_repbert.serve.mcp import make_tools

        tools = make_tools(service).http_app(path='/mcp')  # its only route is /mcp

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = asyncio.create_task(_opened(service, app))
        async with contextlib.AsyncExitStack() as held:
            if tools is not None:
                await held.enter_async_context(tools.router.lifespan_context(tools))
            yield
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
        await service.close()

    app = FastAPI(
        title='pyserini_repbert',
        version=__version__,
        description='Search with dense, sparse and fused systems, rerankers and explanations; '
        "the routes of Pyserini's and Anserini's servers with additions.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.openapi = partial(_described, app.openapi)  # type: ignore[method-assign]
    app.state.service, app.state.metrics = service, metrics
    _add_errors(app)
    _add_own_routes(app, service, metrics)
    router = make_router(service)
    app.include_router(router)
    if tools is not None:
        app.router.routes.extend(tools.routes)
    app.mount('/', PageFiles(router.routes), name='page')
    app.add_middleware(Gate, settings=settings, metrics=metrics)  # type: ignore[arg-type]
    return app


def _described(openapi: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The OpenAPI document, with the two headers for a key; a service without keys asks for none."""
    document = openapi()
    document['components']['securitySchemes'] = {
        'key': {'type': 'apiKey', 'in': 'header', 'name': 'X-API-Key'},
        'bearer': {'type': 'http', 'scheme': 'bearer'},
    }
    document['security'] = [{}, {'key': []}, {'bearer': []}]
    return document


async def _opened(service: Service, app: FastAPI) -> None:
    """Open the indexes; if that fails, ask the server that runs the application to stop."""
    try:
        await service.open()
    except Exception as error:
        service.failure = service.failure or f'{type(error).__name__}: {error}'
        logger.debug('the indexes cannot be opened', exc_info=True)
        getattr(app.state, 'stop', lambda: None)()


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(PyseriniRepbertError)
    async def refused(request: Request, error: PyseriniRepbertError) -> Response:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        headers = {'Retry-After': str(error.retry_after)} if isinstance(error, _TRY_AGAIN) else None
        message = ' '.join(str(error).split())
        if status == 500:
            logger.error('request %s: %s', request.state.request_id, message)
            message = f'the service failed: its log says why (request {request.state.request_id})'
        return json_response({'error': message}, status, headers)

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        message = str(error.detail)
        if error.status_code == 404 and message == 'Not Found':
            message = 'there is nothing at this address: expected /v1/{index}/search, say; /docs has all of them'
        if message == 'There was an error parsing the body':
            message = 'the body is not JSON in UTF-8: send it as it is, not compressed'
        if error.status_code == 405:
            message = f'{request.method} is not for this address: /docs says what is'
        return json_response({'error': message}, error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = [str(part) for part in first['loc']]
        if first['type'] == 'json_invalid':
            problem = first.get('ctx', {}).get('error', '')
            return json_response({'error': f'the body is not JSON ({problem}, at character {where[-1]})'}, 400)
        name = f"parameter '{'.'.join(where[1:])}'" if len(where) > 1 else 'the body'
        if name == 'the body' and 'json' not in request.headers.get('content-type', ''):
            return json_response({'error': 'the body has to be JSON: send Content-Type: application/json'}, 422)
        given = json.dumps(first.get('input'), default=str)[:_CUT] if first['type'] != 'missing' else 'nothing'
        status = 422 if where[0] == 'body' else 400
        return json_response({'error': f'{name}: {first["msg"]} ({given} was given)'}, status)


def _add_own_routes(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.api_route('/healthz', methods=_PROBED, include_in_schema=False)
    async def healthz() -> Response:
        return json_response({'status': 'alive'})

    @app.api_route('/readyz', methods=_PROBED, include_in_schema=False)
    async def readyz() -> Response:
        return json_response({'status': 'ready', 'indexes': list(service.served)})

    @app.api_route('/metrics', methods=_PROBED, include_in_schema=False)
    async def measured() -> Response:
        for lane in service.lanes.all:
            metrics.waiting(lane.name, lane.length)
        return Response(metrics.text(), headers={'content-type': CONTENT_TYPE})

    @app.api_route('/docs', methods=_PROBED, include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(page('api', document=app.openapi()))

    @app.api_route('/openapi.yaml', methods=_PROBED, include_in_schema=False)
    async def openapi_yaml() -> Response:
        import yaml

        text: Any = yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True)
        return Response(text, headers={'content-type': 'application/yaml; charset=utf-8'})

"""The ASGI application: routes, errors as JSON objects, health, metrics, the OpenAPI document and the page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mimetypes
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.errors import MissingDependencyError, install_extra

try:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.staticfiles import StaticFiles
except ModuleNotFoundError as error:
    raise MissingDependencyError.of(error.name or 'fastapi', __name__, install_extra('serve')) from error

from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.serve.access import CONTENT_TYPE, Gate, Metrics
from pyserini_repbert.serve.refusals import add_error_handlers, json_response
from pyserini_repbert.serve.routes import make_router
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.stored import add_stored

logger = logging.getLogger(__name__)

PAGE = Path(__file__).with_name('page')
_PROBED = ['GET', 'HEAD']  # load balancers ask by HEAD


def create_app(settings: ServeSettings, with_mcp: bool = False) -> FastAPI:
    """The ASGI application of a service; it opens its indexes in the background once it is started.

    `app.state.service` is the service, `app.state.metrics` its counters. `with_mcp` adds MCP tools at /mcp.
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
    app.state.service, app.state.metrics = service, metrics
    add_error_handlers(app)
    _add_own_routes(app, service, metrics)
    router = make_router(service)
    add_stored(router, service)
    app.include_router(router)
    if tools is not None:
        app.router.routes.extend(tools.routes)
    _add_page(app)
    app.add_middleware(Gate, settings=settings, metrics=metrics)  # type: ignore[arg-type]
    return app


async def _opened(service: Service, app: FastAPI) -> None:
    """Open the indexes; if that fails, ask the server that runs the application to stop."""
    try:
        await service.open()
    except Exception as error:
        service.failure = service.failure or f'{type(error).__name__}: {error}'
        logger.debug('the indexes cannot be opened', exc_info=True)
        getattr(app.state, 'stop', lambda: None)()


def _add_page(app: FastAPI) -> None:
    for kind, ending in (('text/javascript', '.js'), ('text/css', '.css'), ('image/svg+xml', '.svg')):
        mimetypes.add_type(kind, ending)  # the system's table may lack them
    for folder in ('js', 'style'):
        app.mount(f'/{folder}', StaticFiles(directory=PAGE / folder))
    files = StaticFiles(directory=PAGE, html=True)

    @app.api_route('/{name}', methods=_PROBED, include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        return await files.get_response(name, request.scope)

    @app.api_route('/', methods=_PROBED, include_in_schema=False)
    async def start(request: Request) -> Response:
        return await files.get_response('.', request.scope)


def _add_own_routes(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.api_route('/healthz', methods=_PROBED, include_in_schema=False)
    async def healthz() -> Response:
        return json_response({'status': 'alive'})

    @app.api_route('/readyz', methods=_PROBED, include_in_schema=False)
    async def readyz() -> Response:
        return json_response({'status': 'ready', 'indexes': list(service.served)})

    @app.api_route('/metrics', methods=_PROBED, include_in_schema=False)
    async def measured() -> Response:
        for queue in service.queues.values():
            metrics.waiting(queue.name, queue.length)
        return Response(metrics.text(), headers={'content-type': CONTENT_TYPE})

    @app.api_route('/docs', methods=_PROBED, include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(page('api', document=app.openapi()))

    @app.api_route('/openapi.yaml', methods=_PROBED, include_in_schema=False)
    async def openapi_yaml() -> Response:
        import yaml

        text: Any = yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True)
        return Response(text, headers={'content-type': 'application/yaml; charset=utf-8'})

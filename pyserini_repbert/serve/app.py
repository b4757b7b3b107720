"""The ASGI application: routes, errors as JSON, health, metrics, the OpenAPI document, the page;
and its server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from pyserini_repbert import __version__
from pyserini_repbert.errors import InputError, PyseriniRepbertError, needs

with needs('fastapi', __name__, 'serve'):
    import uvicorn
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.staticfiles import StaticFiles

from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.serve.access import Gate, Metrics, access_log
from pyserini_repbert.serve.deadline import make_protocol
from pyserini_repbert.serve.refusals import add_error_handlers, json_response
from pyserini_repbert.serve.routes import make_router
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings

logger = logging.getLogger(__name__)

PAGE = Path(__file__).with_name('page')
_LONGEST_HEAD = (
    256 << 10
)  # bytes of a request's line and headers; longer ones are refused before they are parsed
_IDLE = 15  # seconds that a connection is kept between requests
_BACKLOG = 2048
_PROBED = ['GET', 'HEAD']  # load balancers ask by HEAD


def create_app(settings: ServeSettings, with_mcp: bool = False) -> FastAPI:
    """The ASGI application of a service; it opens its indexes in the background once it is started.

    `app.state.service` is the service. `with_mcp` adds MCP tools at /mcp.
    """
    metrics = Metrics()
    service = Service(settings, metrics.batch, metrics.step)
    tools = None
    if with_mcp:
        from pyserini_repbert.serve.mcp import make_tools

        # its only route is /mcp; without sessions, no client can open more than the service holds
        tools = make_tools(service).http_app(path='/mcp', stateless_http=True)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = asyncio.create_task(_opened(service, app))
        async with tools.router.lifespan_context(tools) if tools else contextlib.nullcontext():
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
    app.state.service = service
    add_error_handlers(app)
    app.include_router(make_router(service))
    if tools is not None:
        app.router.routes.extend(tools.routes)
    app.add_middleware(Gate, settings=settings, metrics=metrics)  # type: ignore[arg-type]

    @app.api_route('/healthz', methods=_PROBED, include_in_schema=False)
    async def healthz() -> Response:
        return json_response({'status': 'alive'})

    @app.api_route('/readyz', methods=_PROBED, include_in_schema=False)
    async def readyz() -> Response:
        return json_response({'status': 'ready', 'indexes': list(service.served)})

    @app.api_route('/metrics', methods=_PROBED, include_in_schema=False)
    async def measured() -> Response:
        return metrics.response(service.queues.values())

    @app.api_route('/docs', methods=_PROBED, include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(page('api', document=app.openapi()))

    @app.api_route('/openapi.yaml', methods=_PROBED, include_in_schema=False)
    async def openapi_yaml() -> Response:
        text: Any = yaml.safe_dump(app.openapi(), sort_keys=False, allow_unicode=True)
        return Response(text, headers={'content-type': 'application/yaml; charset=utf-8'})

    for folder in ('js', 'style'):
        app.mount(f'/{folder}', StaticFiles(directory=PAGE / folder))
    files = StaticFiles(directory=PAGE, html=True)  # the page takes all names that are left

    @app.api_route('/', methods=_PROBED, include_in_schema=False)
    @app.api_route('/{name}', methods=_PROBED, include_in_schema=False)
    async def file(request: Request) -> Response:
        return await files.get_response(request.path_params.get('name', '.'), request.scope)

    return app


async def _opened(service: Service, app: FastAPI) -> None:
    """Open the indexes; if that fails, ask the server that runs the application to stop."""
    try:
        await service.open()
    except Exception as error:
        service.failure = str(error) if isinstance(error, PyseriniRepbertError) else repr(error)
        logger.debug('the indexes cannot be opened', exc_info=True)
        getattr(app.state, 'stop', lambda: None)()


def listening(host: str, port: int) -> list[socket.socket]:
    """A listening socket, opened before anything is loaded.

    Raises InputError for an address that cannot be had.
    """
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets with this protocol; without it, answers one by one
    # take 40 ms more
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, 'strerror', None) or error
        text = f'cannot listen at {host} port {port} ({reason}): choose another'
        raise InputError(text, parameters=('host', 'port')) from error
    return [listener]


def raise_file_limit() -> None:
    """Raise the limit of open files to the highest allowed: each connection takes one, and 1024
    are soon used up.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(
    app: Any, settings: ServeSettings, sockets: list[socket.socket], log_file: str | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the requests in hand, within
    `limits.stop_seconds`.

    It stops by itself if the indexes cannot be opened: `app.state.service.failure` says why.
    Requests are logged to `log_file`, or to stderr, as JSON lines.
    """
    raise_file_limit()
    access_log.addHandler(
        logging.FileHandler(log_file, encoding='utf-8') if log_file else logging.StreamHandler()
    )
    access_log.setLevel(logging.INFO)
    access_log.propagate = False
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=make_protocol(settings.limits.request_seconds),
            ws='none',
            access_log=False,
            server_header=False,
            log_config=None,
            log_level=logging.WARNING,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=math.ceil(settings.limits.stop_seconds),
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            backlog=_BACKLOG,
        )
    )
    app.state.stop = lambda: setattr(server, 'should_exit', True)
    server.run(sockets=sockets)

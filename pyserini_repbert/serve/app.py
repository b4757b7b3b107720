"""The ASGI application of a service: its routes, errors as JSON, and the search page."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.extension import extensions, loaded

with needs('fastapi', __name__, 'serve'):
    from fastapi import FastAPI
    from fastapi.routing import APIRoute
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import BaseRoute
    from starlette.staticfiles import StaticFiles

from pyserini_repbert.serve import (
    judging_routes,
    operations,
    reading_routes,
    routes,
    write_routes,
)
from pyserini_repbert.serve.access import Gate
from pyserini_repbert.serve.http_errors import add_error_handlers, refuse_method
from pyserini_repbert.serve.metrics import Metrics
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings

PAGE = Path(__file__).with_name('page')
_READER = 'index.html'
_LABORATORY = 'lab.html'
# The beginning of both pages, and the line that is replaced by it.
_HEAD = 'head.html'
_HEAD_LINE = f'<!-- {_HEAD} -->\n'
# The line that is replaced by the scripts and style sheets of extensions, and their address.
_EXTENSIONS_LINE = '<!-- extensions -->\n'
_EXTENSIONS = 'extensions'
# Their names of the two pages.
_PAGES = {'reader': _READER, 'laboratory': _LABORATORY}
# What only the laboratory shows: an address that names one of these is its own.
_OF_LABORATORY = frozenset(
    'view system fusion weights normalize rrf_k rerank like open why'.split()
)
# In the path of a route: '{docid:path}'.
_PARAMETER = re.compile(r'\{[^{}]*\}')


def create_app(settings: ServeSettings, with_mcp: bool = False) -> FastAPI:
    """The ASGI application of a service; it opens its indexes in the background once it is started.

    `app.state.service` is the service. `with_mcp` adds MCP tools at /mcp.
    """
    metrics = Metrics()
    service = Service(settings, metrics.count_batch, metrics.count_step)
    mcp = _mcp_app(service) if with_mcp else None

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = asyncio.create_task(_open(service, app))
        async with contextlib.AsyncExitStack() as held:
            if mcp is not None:
                await held.enter_async_context(mcp.router.lifespan_context(mcp))
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
    app.state.metrics = metrics
    add_error_handlers(app)
    # `include_router` would make each route once more, while the first request waits.
    for router in loaded('routes'):
        app.router.routes.extend(router.routes)
    app.router.routes.extend(write_routes.router.routes)
    app.router.routes.extend(judging_routes.router.routes)
    app.router.routes.extend(reading_routes.router.routes)
    app.router.routes.extend(routes.router.routes)
    if mcp is not None:
        app.router.routes.extend(mcp.routes)
        # Without sessions, a client has nothing to listen to (MCP, Streamable HTTP).
        app.add_api_route('/mcp', refuse_method, methods=operations.PROBED, include_in_schema=False)
    app.add_middleware(Gate, settings=settings, metrics=metrics)  # type: ignore[arg-type]
    app.router.routes.extend(operations.router.routes)
    _check_addresses(app.routes)
    _add_page(app)
    return app


def _check_addresses(routes: Sequence[BaseRoute]) -> None:
    """Raise InputError for a route that hides a later one: it answers its addresses."""
    answering = [route for route in routes if isinstance(route, APIRoute)]
    for number, route in enumerate(answering):
        # An address of the route, with any values for its parameters.
        address = _PARAMETER.sub('any', route.path)
        for earlier in answering[:number]:
            methods = set(earlier.methods or ()) & set(route.methods or ())
            if methods and earlier.path_regex.match(address):
                raise InputError(
                    f'{earlier.endpoint.__module__} and {route.endpoint.__module__} both answer '
                    f'{min(methods)} {route.path}: give one another address, or uninstall it'
                )


def _mcp_app(service: Service) -> Any:
    """An application with the one route /mcp.

    Without sessions, no client can open more of them than the service holds.
    """
    from pyserini_repbert.serve.mcp import make_tools

    return make_tools(service).http_app(path='/mcp', stateless_http=True)


def _add_page(app: FastAPI) -> None:
    """Serve the page's files, by all names that no route has."""
    for folder in ('js', 'style'):
        app.mount(f'/{folder}', StaticFiles(directory=PAGE / folder))
    for extension in extensions().values():
        if extension.page:
            address = f'/{_EXTENSIONS}/{extension.name}'
            app.mount(address, StaticFiles(packages=[(extension.package, 'page')]))
    files = StaticFiles(directory=PAGE)

    @app.api_route('/', methods=operations.PROBED, include_in_schema=False)
    @app.api_route('/{name}', methods=operations.PROBED, include_in_schema=False)
    async def file(request: Request) -> Response:
        name = request.path_params.get('name') or _first_page(request)
        if name in (_READER, _LABORATORY):
            return _page_response(name, request)
        return await files.get_response(name, request.scope)


@cache
def page_text(name: str) -> str:
    """One of the two pages, with the head that they share, and with what extensions add; its
    files are read once.
    """
    head = (PAGE / _HEAD).read_text(encoding='utf-8')
    text = (PAGE / name).read_text(encoding='utf-8').replace(_HEAD_LINE, head)
    return text.replace(_EXTENSIONS_LINE, _extension_tags(name))


def _extension_tags(name: str) -> str:
    """The elements that load what extensions add to a page, a line each."""
    lines = ''
    for extension in extensions().values():
        for page, files in extension.page.items():
            if _PAGES[page] != name:
                continue
            for file in files:
                address = f'{_EXTENSIONS}/{extension.name}/{file}'
                if file.endswith('.css'):
                    lines += f'<link rel="stylesheet" href="{address}">\n'
                else:
                    lines += f'<script type="module" src="{address}"></script>\n'
    return lines


def _page_response(name: str, request: Request) -> Response:
    """A page; an answer without content if the browser already has it."""
    tag = _page_tag(name)
    if request.headers.get('if-none-match') == tag:
        return Response(status_code=304, headers={'etag': tag})
    return HTMLResponse(page_text(name), headers={'etag': tag})


@cache
def _page_tag(name: str) -> str:
    """The entity tag of a page."""
    return f'"{hashlib.sha256(page_text(name).encode()).hexdigest()}"'


def _first_page(request: Request) -> str:
    """The page at the service's own address: the reader's, or the laboratory."""
    names = _OF_LABORATORY.intersection(request.query_params)
    return _LABORATORY if names else _READER


async def _open(service: Service, app: FastAPI) -> None:
    """Open the indexes; if that fails, ask the server that runs the application to stop."""
    await service.try_open()
    stop = getattr(app.state, 'stop', None)
    if service.failure and stop is not None:
        stop()

"""The page's files: browsers check them for changes; their types do not depend on the system's table."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).with_name('page')


class PageFiles(StaticFiles):
    """What is below `page`. A browser asks each time whether a file is new: scripts of two releases do not mix.

    Parameters
    ----------
    routes : those below /v1, for addresses that are asked by another method than theirs
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes
        for kind, ending in (('text/javascript', '.js'), ('text/css', '.css'), ('image/svg+xml', '.svg')):
            mimetypes.add_type(kind, ending)
        super().__init__(directory=PAGE, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The page's file; below /v1 there is none: what comes here had no route."""
        if path.startswith('v1/'):
            allowed = self._methods(scope)
            raise HTTPException(405, headers={'Allow': ', '.join(allowed)}) if allowed else HTTPException(404)
        return await super().get_response(path, scope)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers['cache-control'] = 'no-cache'
        return response

    def _methods(self, scope: Scope) -> list[str]:
        """The methods of the routes at a request's address."""
        found = [route for route in self._routes if route.matches(scope)[0] is Match.PARTIAL]
        return sorted({method for route in found for method in getattr(route, 'methods', ())})

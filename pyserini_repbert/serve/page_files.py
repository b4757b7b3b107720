"""The page's files, which browsers check for changes, with media types that do not depend on the system's table."""

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
    """Serves the folder `page`. Browsers check each file for changes, so that scripts of two releases do not mix.

    Parameters
    ----------
    routes : those below /v1, to tell a wrong method (405) from a wrong address (404)
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes
        for kind, ending in (('text/javascript', '.js'), ('text/css', '.css'), ('image/svg+xml', '.svg')):
            mimetypes.add_type(kind, ending)
        super().__init__(directory=PAGE, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file at `path`. Raises HTTPException 404 where there is none, and 405 or 404 below /v1."""
        if path.startswith('v1/'):
            allowed = self._methods(scope)
            raise HTTPException(405, headers={'Allow': ', '.join(allowed)}) if allowed else HTTPException(404)
        return await super().get_response(path, scope)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or 304 if it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers['cache-control'] = 'no-cache'
        return response

    def _methods(self, scope: Scope) -> list[str]:
        """The methods of the routes at a request's address, sorted; none if it has no route."""
        found = [route for route in self._routes if route.matches(scope)[0] is Match.PARTIAL]
        return sorted({method for route in found for method in getattr(route, 'methods', ())})

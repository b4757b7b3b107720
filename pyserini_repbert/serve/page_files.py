"""The page's files: browsers check them for changes; their types do not depend on the system's table."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).with_name('page')


class PageFiles(StaticFiles):
    """What is below `page`. A browser asks each time whether a file is new: scripts of two releases do not mix."""

    def __init__(self) -> None:
        for kind, ending in (('text/javascript', '.js'), ('text/css', '.css'), ('image/svg+xml', '.svg')):
            mimetypes.add_type(kind, ending)
        super().__init__(directory=PAGE, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The page's file; below /v1 there is none: what comes here had no route."""
        if path.startswith('v1/'):
            raise HTTPException(404 if scope['method'] == 'GET' else 405)
        return await super().get_response(path, scope)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers['cache-control'] = 'no-cache'
        return response

"""The page's files: browsers check them for changes; their types do not depend on the system's table."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

PAGE = Path(__file__).with_name('page')


class PageFiles(StaticFiles):
    """What is below `page`. A browser asks each time whether a file is new: scripts of two releases do not mix."""

    def __init__(self) -> None:
        for kind, ending in (('text/javascript', '.js'), ('text/css', '.css'), ('image/svg+xml', '.svg')):
            mimetypes.add_type(kind, ending)
        super().__init__(directory=PAGE, html=True)

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers['cache-control'] = 'no-cache'
        return response

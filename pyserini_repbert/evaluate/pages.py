"""HTML pages: each is one file that needs nothing else, made from a template in which every text is escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pyserini_repbert.catalog import RESOURCES

if TYPE_CHECKING:
    from jinja2 import Environment


def page(template: str, **values: Any) -> str:
    """The page of `resources/templates/TEMPLATE.html.j2` for these values."""
    return _environment().get_template(f'{template}.html.j2').render(values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(RESOURCES / 'templates'),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

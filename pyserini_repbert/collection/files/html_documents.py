"""Web pages as documents: their visible text, `<title>`, and `<meta>` as fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.collection.files.read_page import ReadPage, titled_text
from pyserini_repbert.data.documents import TITLE_KEY, Document, plain_fields
from pyserini_repbert.data.markup import one_line, parse_head

# Text with more digits than a float holds exactly, or with leading zeros, stays text.
_NUMBER = re.compile(r'-?(?:0|[1-9]\d{0,14})(?:\.\d{1,14})?')
_TRUTH_VALUES = {'true': True, 'false': False}
# The one name whose content HTML defines as a list.
_KEYWORDS = 'keywords'


def document_of_html(docid: str, markup: str, main_content: bool = False) -> Document:
    """The document of a web page: what a person reads of it, and its headings.

    Its title is `<title>`, otherwise its fields' title, otherwise the first top-level heading, or a
    heading in front of all other words. Such a heading, if it is the title, is left out of the
    text.

    `<meta name=… content=…>` and `<meta property=… content=…>` become fields. A name that occurs
    again gets a list, and keywords are a list. Contents are texts, except for numbers, `true` and
    `false`.

    With `main_content`, navigation, headers and footers of the page are not text (`read_html`).
    """
    start = parse_head(markup)
    title = _title(start)
    fields = plain_fields(_fields(start))
    if not title and isinstance(fields.get(TITLE_KEY), str):
        title = fields[TITLE_KEY]
    fields.pop(TITLE_KEY, None)
    page = read_html(markup, main_content)
    page.title = title or _first_heading(page)
    titled = titled_text(page, '')
    return Document(docid, titled.placed.text, titled.title, fields, titled.placed.origin)


def _first_heading(page: ReadPage) -> str:
    """The words of the first heading of the first level; '' without one."""
    return next((heading.title for heading in page.headings if heading.level == 1), '')


def _title(page: LexborHTMLParser) -> str:
    """The words of the first title; '' without one. That of a drawing is not the page's."""
    for node in page.css('title'):
        if node.parent is None or node.parent.tag != 'svg':
            return one_line(node.text())
    return ''


def _fields(page: LexborHTMLParser) -> dict[str, Any]:
    """The fields of a page's head."""
    fields: dict[str, Any] = {}
    for meta in page.css('head meta'):
        _add_field(fields, meta.attributes)
    return fields


def _add_field(fields: dict[str, Any], attributes: Mapping[str, str | None]) -> None:
    name = _attribute(attributes, 'name').lower() or _attribute(attributes, 'property')
    content = _attribute(attributes, 'content')
    if not name or not content:
        return
    if name == _KEYWORDS:
        parts = [part.strip() for part in content.split(',')]
        _extend_field(fields, name, [value_of_text(part) for part in parts if part])
    elif name in fields:
        _extend_field(fields, name, [value_of_text(content)])
    else:
        fields[name] = value_of_text(content)


def _extend_field(fields: dict[str, Any], name: str, values: list[Any]) -> None:
    """Add values to a field, which becomes a list."""
    known = fields.get(name, [])
    if not isinstance(known, list):
        known = [known]
    fields[name] = [*known, *values]


def _attribute(attributes: Mapping[str, str | None], name: str) -> str:
    """The words of an attribute; '' if there is none."""
    return ' '.join((attributes.get(name) or '').split())


def value_of_text(content: str) -> str | float | bool:
    """The value that a text represents."""
    truth = _TRUTH_VALUES.get(content.lower())
    if truth is not None:
        return truth
    if _NUMBER.fullmatch(content):
        return float(content) if '.' in content else int(content)
    return content

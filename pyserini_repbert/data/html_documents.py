"""Web pages as documents: their visible text, `<title>`, and `<meta>` as fields."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from pyserini_repbert.data.documents import TITLE_KEY, Document, plain_fields
from pyserini_repbert.data.trec_text import plain_text

UNSEEN = ('script', 'style', 'noscript')
"""Elements whose contents are no text."""

# Marks at the start of a file, and what they say.
_MARKS = (
    (codecs.BOM_UTF8, 'utf-8'),
    (codecs.BOM_UTF16_LE, 'utf-16-le'),
    (codecs.BOM_UTF16_BE, 'utf-16-be'),
)
_CHARSET = re.compile(rb'<meta\b[^>]*?\bcharset\s*=\s*["\']?\s*([\w.:-]+)', re.IGNORECASE)
_WESTERN = 'cp1252'
# Where a page says Latin-1 or ASCII, browsers read Windows-1252.
_WESTERN_SUBSETS = ('iso8859-1', 'ascii')
# How the names of Python's codecs for pages begin; others, such as rot13, are none of text.
_CODECS_OF_PAGES = (
    'big5',
    'cp',
    'euc_',
    'gb',
    'iso2022_',
    'iso8859-',
    'koi8-',
    'mac-',
    'shift_jis',
    'tis-620',
)
_END_OF_HEAD = re.compile(r'</head\b|<body\b', re.IGNORECASE)
_MOST_HEAD = 65_536  # characters
# More digits than a float holds exactly, and zeros in front, make no number of a text.
_NUMBER = re.compile(r'-?(?:0|[1-9]\d{0,14})(?:\.\d{1,14})?')
_TRUTH_VALUES = {'true': True, 'false': False}
# The one name whose content HTML defines as a list.
_KEYWORDS = 'keywords'


def decode_page(raw: bytes) -> str:
    """A page's markup: UTF-8, or else what its byte order mark or its `<meta charset>` says.

    Bytes that neither explains become U+FFFD.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.removeprefix(mark).decode(encoding, 'replace')
    try:
        return raw.decode('utf-8')
    except UnicodeDecodeError:
        return raw.decode(_declared_encoding(raw), 'replace')


def _declared_encoding(raw: bytes) -> str:
    """The encoding that a page's head names; UTF-8 if it names none that is known."""
    charset = _CHARSET.search(raw[:_MOST_HEAD])
    if charset is None:
        return 'utf-8'
    try:
        codec = codecs.lookup(charset[1].decode('ascii'))
    except (LookupError, UnicodeDecodeError):
        return 'utf-8'
    if codec.name in _WESTERN_SUBSETS:
        return _WESTERN
    return codec.name if codec.name.startswith(_CODECS_OF_PAGES) else 'utf-8'


def document_of_html(docid: str, markup: str) -> Document:
    """The document of a web page.

    `<meta name=… content=…>` and `<meta property=… content=…>` become fields; a name that comes
    again has a list, and keywords are one. Contents are texts, but for numbers, `true` and `false`.
    """
    head = _read_head(markup)
    title = ' '.join(head.title.split())
    fields = plain_fields(head.fields)
    if not title and isinstance(fields.get(TITLE_KEY), str):
        title = fields[TITLE_KEY]
    fields.pop(TITLE_KEY, None)
    text = plain_text(without_elements(markup, ('title', *UNSEEN)))
    return Document(docid, text, title, fields)


def without_elements(page: str, names: Sequence[str]) -> str:
    """A page without elements of these names; what is opened and never closed is not one."""
    for name in names:
        begin = re.compile(rf'<{name}\b', re.IGNORECASE)
        *parts, rest = re.split(rf'</{name}\s*>', page, flags=re.IGNORECASE)
        before = [begin.split(part, maxsplit=1)[0] for part in parts]
        page = ' '.join([*before, rest])
    return page


def _read_head(markup: str) -> _Head:
    """The title and the fields of a page's head."""
    start = markup[:_MOST_HEAD]
    end = _END_OF_HEAD.search(start)
    head = _Head()
    try:
        head.feed(start if end is None else start[: end.start()])
    except AssertionError:
        # Python's parser raises it for a declaration such as '<![x'; what it has read is kept.
        return head
    return head


class _Head(HTMLParser):
    """Collects the title and the fields."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ''
        self.fields: dict[str, Any] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A second title, as of a drawing, is not the page's.
        self._in_title = tag == 'title' and not self.title
        if tag == 'meta':
            self._add_field(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data

    def _add_field(self, attributes: dict[str, str | None]) -> None:
        name = _attribute(attributes, 'name').lower() or _attribute(attributes, 'property')
        content = _attribute(attributes, 'content')
        if not name or not content:
            return
        if name == _KEYWORDS:
            parts = [part.strip() for part in content.split(',')]
            self._extend_field(name, [_value_of(part) for part in parts if part])
        elif name in self.fields:
            self._extend_field(name, [_value_of(content)])
        else:
            self.fields[name] = _value_of(content)

    def _extend_field(self, name: str, values: list[Any]) -> None:
        """Add values to a field, which becomes a list."""
        known = self.fields.get(name, [])
        if not isinstance(known, list):
            known = [known]
        self.fields[name] = [*known, *values]


def _attribute(attributes: Mapping[str, str | None], name: str) -> str:
    """The words of an attribute; '' if there is none."""
    return ' '.join((attributes.get(name) or '').split())


def _value_of(content: str) -> str | float | bool:
    """The value that a text stands for."""
    truth = _TRUTH_VALUES.get(content.lower())
    if truth is not None:
        return truth
    if _NUMBER.fullmatch(content):
        return float(content) if '.' in content else int(content)
    return content

"""Markdown and text files as documents: a header of fields, a title, and the text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pyserini_repbert.collection.files.markdown_text import read_markdown
from pyserini_repbert.collection.files.read_page import titled_text
from pyserini_repbert.data.documents import TITLE_KEY, Document, plain_fields
from pyserini_repbert.data.origins import PlacedText, text_of_rows
from pyserini_repbert.data.yaml_files import parse_yaml
from pyserini_repbert.errors import InputError

# A header is between two lines of hyphens (YAML) or of plus signs (TOML). Its first entry tells it
# from a rule between paragraphs; comments may stand in front, or alone.
_YAML_HEADER = re.compile(r'---[ \t]*\r?\n(.*?)(?<=\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)', re.DOTALL)
_TOML_HEADER = re.compile(r'\+\+\+[ \t]*\r?\n(.*?)(?<=\n)\+\+\+[ \t]*(?:\r?\n|\Z)', re.DOTALL)
_COMMENTS = r'(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*'
_YAML_ENTRY = re.compile(_COMMENTS + r'(?:[^\s:#-][^:\n]*:(?:\s|\Z)|\Z)')
_TOML_ENTRY = re.compile(_COMMENTS + r'(?:\[|[\w."\'-]+[ \t]*=|\Z)')
_MOST_HEADER = 65_536  # characters
# tomllib takes time quadratic in the parts of a dotted key.
_MOST_KEY_PARTS = 50
_QUOTED = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'')
_NOT_IN_KEYS = re.compile(r'[^\w. \t-]')
# What a heading of the first level needs: a line that begins with # or is a row of =.
_MAY_BE_HEADING = re.compile(r'^ {0,3}(?:#(?:\s|\Z)|=+[ \t]*$)', re.MULTILINE)
_LINE_END = re.compile(r'\r\n?|\n')
# A heading is looked for in the beginning of a text, and in more of it only where that is all code
# or comments: reading Markdown takes time.
_BEGINNINGS = (2_048, 65_536)  # characters
# What may stand in front of the title: code, comments, rules and pictures, such as badges.
_NO_PROSE = ('code_block', 'fence', 'html_block', 'hr')
_PICTURES = ('![', '[![', '<')


@dataclass(frozen=True)
class _Header:
    """What a header says.

    Attributes
    ----------
    title : '' if it has none
    fields : its other entries
    end : where the text begins behind it
    """

    title: str = ''
    fields: Mapping[str, Any] = field(default_factory=dict)
    end: int = 0


@dataclass(frozen=True)
class _Heading:
    """A heading: its words, and where its lines begin and end."""

    title: str
    start: int
    end: int


def document_of_markdown(docid: str, text: str, name: str = '') -> Document:
    """The document of a Markdown file: what a person reads of it, and its headings.

    The header that may begin the file, YAML or TOML, becomes fields. Its `title`, as it is written,
    is the document's title; without it, the first heading is, if there is no prose before it. A
    heading that is the title is left out of the text. A page without either is called `name`. An
    empty one is not: nobody looks for it.

    Raises ValueError for a header that is not YAML or TOML, or has a list as title.
    """
    text = _LINE_END.sub('\n', text)
    header = _read_header(text)
    page = read_markdown(text[header.end :], 1 + text.count('\n', 0, header.end))
    page.title = ' '.join(header.title.split())
    is_empty = not header.fields and not text[header.end :].strip()
    titled = titled_text(page, '' if is_empty else name)
    return _document(docid, titled.title, header, titled.placed)


def document_of_text(docid: str, text: str) -> Document:
    """The document of a text file, with header and title as Markdown has them.

    Only a heading of the first level is its title. Raises as `document_of_markdown`.
    """
    text = _LINE_END.sub('\n', text)
    header = _read_header(text)
    first = 1 + text.count('\n', 0, header.end)
    text = text[header.end :]
    title = header.title
    start = 0
    end = 0
    if not title:
        heading = _find_heading(text)
        if heading is not None:
            title = heading.title
            start = text.count('\n', 0, heading.start)
            end = text.count('\n', 0, heading.end) + (not text[: heading.end].endswith('\n'))
    placed = text_of_rows(text.split('\n'), start, end, first)
    return _document(docid, ' '.join(title.split()), header, placed)


def _document(docid: str, title: str, header: _Header, placed: PlacedText) -> Document:
    return Document(docid, placed.text, title, header.fields, placed.origin)


def _read_header(text: str) -> _Header:
    """The header of a text; an empty one if there is none."""
    match = _YAML_HEADER.match(text, 0, _MOST_HEADER)
    if match is not None and _YAML_ENTRY.match(match[1]):
        return _yaml_header(match[1], match.end())
    match = _TOML_HEADER.match(text, 0, _MOST_HEADER)
    if match is not None and _TOML_ENTRY.match(match[1]):
        return _toml_header(match[1], match.end())
    return _Header()


def _yaml_header(header: str, end: int) -> _Header:
    try:
        file = parse_yaml(header, 'the header', has_written_keys=True)
    except InputError as error:
        raise ValueError(f'{error}: fix it, or remove the lines of ---') from error
    if not isinstance(file.value, Mapping):
        return _Header(end=end)
    fields = plain_fields(file.value)
    title = _checked_title(fields.pop(TITLE_KEY, None))
    if title:
        title = file.written(TITLE_KEY)
    return _Header(title, fields, end)


def _toml_header(header: str, end: int) -> _Header:
    _check_keys(header)
    try:
        values = tomllib.loads(header)
    except (ValueError, RecursionError) as error:
        why = f'the header is not TOML ({error})'
        raise ValueError(f'{why}: fix it, or remove the lines of +++') from error
    fields = plain_fields(values)
    return _Header(_checked_title(fields.pop(TITLE_KEY, None)), fields, end)


def _check_keys(header: str) -> None:
    """Raises ValueError for a dotted key of TOML that has too many parts to be read in time."""
    for part in _NOT_IN_KEYS.split(_QUOTED.sub('_', header)):
        if part.count('.') >= _MOST_KEY_PARTS:
            raise ValueError(
                f'the header has a key of more than {_MOST_KEY_PARTS} parts: write tables'
            )


def _checked_title(title: Any) -> str:
    """A title as text; '' for None. Raises ValueError for a list or a mapping."""
    if isinstance(title, (list, dict)):
        raise ValueError('the header: its title is not text: put it in quotes')
    return '' if title is None else str(title)


def _find_heading(text: str) -> _Heading | None:
    """The heading that is used as a text's title; None if there is none."""
    if _MAY_BE_HEADING.search(text, 0, _BEGINNINGS[-1]) is None:
        return None
    for length in _BEGINNINGS:
        start = _whole_lines(text, length)
        tokens = _markdown().parse(start)
        row = _first_prose(tokens)
        if row is None:
            continue
        if tokens[row].tag == 'h1':
            return _heading_at(start, tokens[row].map, tokens[row + 1].content)
        # The next line could make a heading of a last paragraph.
        is_last = tokens[row].map[1] >= len(start.splitlines())
        if not is_last:
            return None
    return None


def _whole_lines(text: str, length: int) -> str:
    """The lines of a text's first characters; one line if they have no line end."""
    start = text[:length]
    if len(start) == len(text):
        return start
    end = start.rfind('\n') + 1
    return start[:end] if end else start


@cache
def _markdown() -> Any:
    """A parser of blocks, which leaves the content of lines unparsed."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt('commonmark')
    markdown.core.ruler.enableOnly(['normalize', 'block'])
    return markdown


def _first_prose(tokens: Sequence[Any]) -> int | None:
    """The row of the first block that is not code, a comment, a rule, a picture, or empty."""
    for row, token in enumerate(tokens):
        is_block = token.level == 0 and token.nesting >= 0
        if not is_block or token.type in _NO_PROSE:
            continue
        content = tokens[row + 1].content
        if token.type == 'heading_open' and not content:
            continue
        if token.type == 'paragraph_open' and content.startswith(_PICTURES):
            continue
        return row
    return None


def _heading_at(text: str, lines: Sequence[int], title: str) -> _Heading:
    """The heading between two of a text's lines, counted from 0."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    return _Heading(title, starts[lines[0]], starts[min(lines[1], len(starts) - 1)])

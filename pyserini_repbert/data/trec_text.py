"""TREC's marked-up text, `<DOC> <DOCNO> … </DOC>`.

Malformed text is always reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from pyserini_repbert.data.markup import CDATA, escape_cdata, visible_text, without_cdata_tags

_MARK = re.compile(rb'(?i:<(/?)DOC>)|<!\[CDATA\[|\]\]>')
_CDATA_BEGIN = CDATA.encode()
_CDATA_END = b']]>'
# A longer CDATA section with a </DOC> in it is taken as one that does not end.
_MOST_CDATA = 1_048_576  # bytes
_DOCNO = re.compile('<DOCNO>', re.IGNORECASE)
_DOCNO_END = re.compile('</DOCNO>', re.IGNORECASE)
_SHOWN = 40
_NOT_CLOSED = 'a <DOC> without </DOC>'
_NO_CDATA_END = f'{CDATA} without ]]>'
_NO_DOCNO = 'a <DOC> without <DOCNO>'


class TrecDocument(NamedTuple):
    """A document of TREC text, or instead the error in it.

    Attributes
    ----------
    line : its first, from 1
    docid, text : empty if there is a problem
    problem : None if there is none
    """

    line: int
    docid: str = ''
    text: str = ''
    problem: str | None = None


def read_documents(lines: Iterable[tuple[int, bytes]]) -> Iterator[TrecDocument]:
    """The documents of numbered lines.

    Outside the documents there may be tags (such as an element around all of them), but no text.
    """
    reader = _DocumentReader()
    for part in _protect_cdata(_split(lines)):
        if part.kind is _Kind.OPEN:
            yield from reader.open(part.line)
        elif part.kind is _Kind.CLOSE:
            yield from reader.close(part.line)
        else:
            yield from reader.read_text(part.line, part.raw)
    yield from reader.finish()


class _Kind(Enum):
    """What a part of a file is."""

    TEXT = 0
    OPEN = 1
    CLOSE = 2
    CDATA_BEGIN = 3
    CDATA_END = 4


class _Part(NamedTuple):
    """A tag or the text between two tags: its kind, its line from 1, and its bytes."""

    kind: _Kind
    line: int
    raw: bytes


def _split(lines: Iterable[tuple[int, bytes]]) -> Iterator[_Part]:
    """The parts of numbered lines."""
    for number, raw in lines:
        # Most lines have no mark, which this tells sooner than the pattern.
        if b'<' not in raw and _CDATA_END not in raw:
            yield _Part(_Kind.TEXT, number, raw)
            continue
        position = 0
        for mark in _MARK.finditer(raw):
            yield _Part(_Kind.TEXT, number, raw[position : mark.start()])
            position = mark.end()
            yield _Part(_kind_of(mark), number, mark[0])
        yield _Part(_Kind.TEXT, number, raw[position:])


def _kind_of(mark: re.Match[bytes]) -> _Kind:
    if mark[0] == _CDATA_BEGIN:
        return _Kind.CDATA_BEGIN
    if mark[0] == _CDATA_END:
        return _Kind.CDATA_END
    return _Kind.CLOSE if mark[1] else _Kind.OPEN


def _protect_cdata(parts: Iterable[_Part]) -> Iterator[_Part]:
    """The parts, with the tags inside CDATA sections as text.

    A section ends before the next one begins. If it does not, it protects nothing. Otherwise, one
    without an end would join all following documents.
    """
    section: list[_Part] = []
    n_bytes = 0
    for part in parts:
        if part.kind is _Kind.CDATA_BEGIN:
            yield from section
            section = [part]
            n_bytes = 0
        elif not section:
            yield part
        elif part.kind is _Kind.CDATA_END:
            raw = b''.join(inside.raw for inside in (*section, part))
            yield _Part(_Kind.TEXT, section[0].line, raw)
            section = []
        else:
            section.append(part)
            n_bytes += len(part.raw)
            if n_bytes > _MOST_CDATA:
                yield from section
                section = []
    yield from section


class _DocumentReader:
    """The part of the open document that has been read, if there is one.

    `_reported` says whether text outside of the documents was reported since the last <DOC>.
    """

    def __init__(self) -> None:
        self._start = 0
        self._parts: list[bytes] = []
        self._is_open = False
        self._reported = False

    def read_text(self, number: int, raw: bytes) -> Iterator[TrecDocument]:
        """Take the text between two tags."""
        if self._is_open:
            self._parts.append(raw)
        elif not self._reported and not raw.isspace():
            text = visible_text(raw.decode('utf-8', 'replace'), is_sgml=True)
            if text:
                self._reported = True
                problem = f'text outside <DOC> … </DOC>: {text[:_SHOWN]!r}'
                yield TrecDocument(number, problem=problem)

    def open(self, number: int) -> Iterator[TrecDocument]:
        """Begin a document at a <DOC>."""
        yield from self.finish()
        self._start = number
        self._parts = []
        self._is_open = True
        self._reported = False

    def close(self, number: int) -> Iterator[TrecDocument]:
        """End the document at a </DOC>."""
        if self._is_open:
            yield _document(self._start, b''.join(self._parts))
        elif not self._reported:
            yield TrecDocument(number, problem='</DOC> without <DOC>')
        self._is_open = False

    def finish(self) -> Iterator[TrecDocument]:
        """Report a document that was not closed."""
        if self._is_open:
            yield TrecDocument(self._start, problem=_NOT_CLOSED)


def _document(line: int, raw: bytes) -> TrecDocument:
    try:
        markup = raw.decode('utf-8')
    except UnicodeDecodeError as error:
        return TrecDocument(line, problem=f'not valid UTF-8 ({error.reason})')
    start = _DOCNO.search(markup)
    if start is None:
        return TrecDocument(line, problem=_NO_DOCNO)
    end = _DOCNO_END.search(markup, start.end())
    if end is None:
        return TrecDocument(line, problem=_NO_DOCNO)
    docid = without_cdata_tags(markup[start.end() : end.start()]).strip()
    following = escape_cdata(markup[end.end() :])
    again = _DOCNO.search(following)
    if again and _DOCNO_END.search(following, again.end()):
        problem = (
            f'a <DOC> with two <DOCNO>, {docid[:_SHOWN]!r} the first: is </DOC> missing between '
            'them?'
        )
        return TrecDocument(line, problem=problem)
    rest = f'{escape_cdata(markup[: start.start()])} {following}'
    if CDATA in rest:
        return TrecDocument(line, problem=_NO_CDATA_END)
    return TrecDocument(line, docid, visible_text(rest, is_sgml=True))

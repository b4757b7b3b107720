"""TREC's marked-up text, `<DOC> <DOCNO> … </DOC>`, and that of HTML. Malformed text is always
reported.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

# '<' before a letter, '/', '!' or '?', as in HTML: the 'm < n' of an abstract is text.
_TAG = re.compile(r'<[a-zA-Z/!?][^>]*>')
_COMMENT_OR_TAG = re.compile(f'<!--.*?-->|{_TAG.pattern}', re.DOTALL)
_HUGE_CHARACTER = re.compile(
    '&#[0-9]{4000,};?'
)  # Python converts no more than 4300 digits to a number
_DOC = re.compile(rb'<(/?)DOC>', re.IGNORECASE)
_DOCNO = re.compile('<DOCNO>', re.IGNORECASE)
_DOCNO_END = re.compile('</DOCNO>', re.IGNORECASE)
_SHOWN = 40

Document = tuple[str, str]  # docid and text


def without_tags(markup: str) -> str:
    """The text with a space for each tag and each comment, in time linear in its length.

    A pattern is applied only up to the last end of what it matches. Beyond that, each '<' would
    cost a search of the whole rest.
    """
    comments, tags = (markup.rfind(end) + len(end) if end in markup else 0 for end in ('-->', '>'))
    return (
        _COMMENT_OR_TAG.sub(' ', markup[:comments])
        + _TAG.sub(' ', markup[comments:tags])
        + markup[tags:]
    )


def plain_text(markup: str) -> str:
    """The text of HTML or XML on one line, without tags, its character references replaced."""
    return ' '.join(html.unescape(_HUGE_CHARACTER.sub('\ufffd', without_tags(markup))).split())


def read_documents(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Document | str]]:
    """(number of the first line, (docid, text)) of each document, or an error message in place of
    (docid, text).

    Outside the documents there may be tags (an element around all of them, say), but no text.
    """
    parts: list[bytes] = []
    start = 0
    inside = False
    stray = False
    for number, raw in lines:
        position = 0
        for tag in [*_DOC.finditer(raw), None]:
            before = raw[position : tag.start() if tag else len(raw)]
            position = tag.end() if tag else len(raw)
            if (
                not inside
                and not stray
                and (text := without_tags(before.decode('utf-8', 'replace')).strip())
            ):
                stray = True
                yield number, f'text outside <DOC> … </DOC>: {text[:_SHOWN]!r}'
            if tag is None:
                parts += [before] if inside else []
            elif tag[1]:
                if inside:
                    yield start, _document(b''.join([*parts, before]))
                elif not stray:
                    yield number, '</DOC> without <DOC>'
                inside = False
            else:
                if inside:
                    yield start, 'a <DOC> without </DOC>'
                start = number
                inside = True
                stray = False
                parts = []
    if inside:
        yield start, 'a <DOC> without </DOC>'


def _document(raw: bytes) -> Document | str:
    try:
        document = raw.decode('utf-8')
    except UnicodeDecodeError as error:
        return f'not valid UTF-8 ({error.reason})'
    start = _DOCNO.search(document)
    end = _DOCNO_END.search(document, start.end()) if start else None
    if start is None or end is None:
        return 'a <DOC> without <DOCNO>'
    docid = document[start.end() : end.start()].strip()
    again = _DOCNO.search(document, end.end())
    if again and _DOCNO_END.search(document, again.end()):
        return (
            f'a <DOC> with two <DOCNO>, {docid[:_SHOWN]!r} the first: is </DOC> missing '
            f'between them?'
        )
    return docid, ' '.join(
        without_tags(f'{document[: start.start()]} {document[end.end() :]}').split()
    )

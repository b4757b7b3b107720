"""TREC's marked-up text: `<DOC> <DOCNO> … </DOC>` and `<top> <num> … <title> …`. Malformed text is always reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# A comment, or '<' before a letter, '/', '!' or '?', as in HTML: the 'm < n' of an abstract is text.
TAG = re.compile(r'<!--.*?-->|<[a-zA-Z/!?][^>]*>', re.DOTALL)
_DOC = re.compile(rb'<(/?)DOC>', re.IGNORECASE)
_DOCNO = re.compile(r'<DOCNO>\s*(.*?)\s*</DOCNO>', re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(r'<(/?)(\w+)[^>]*>')
_KEPT_FIELDS = ('num', 'title')
_OTHER_FIELDS = ('desc', 'narr')  # TREC's others; other tags are refused behind text of <num> or <title>
_SHOWN = 40

Document = tuple[str, str]  # docid and text


def read_documents(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Document | str]]:
    """(number of the first line, (docid, text)) of each document, or an error message in place of (docid, text).

    Outside the documents there may be tags (an element around all of them, say), but no text.

    Parameters
    ----------
    lines : (number, line); a document begins at the start of a line
    """
    parts: list[bytes] = []
    start, inside, spoilt, stray = 0, False, False, False
    for number, raw in lines:
        position = 0
        for tag in [*_DOC.finditer(raw), None]:
            before = raw[position : tag.start() if tag else len(raw)]
            position = tag.end() if tag else len(raw)
            if not inside and not stray and (found := _text_of(before)):
                stray = True
                yield number, f'text outside <DOC> … </DOC>: {found!r}'
            if tag is None:
                parts += [before] if inside else []
            elif tag[1]:
                if inside and not spoilt:
                    yield start, _document(b''.join([*parts, before]))
                elif not inside and not stray:
                    yield number, '</DOC> without <DOC>'
                inside, spoilt, parts = False, False, []
            elif raw[: tag.start()].strip():
                if not spoilt:
                    yield number, '<DOC> inside a line: start a line with it'
                inside, spoilt, stray = True, True, False
            else:
                if inside and not spoilt:
                    yield start, 'a <DOC> without </DOC>'
                start, inside, spoilt, stray, parts = number, True, False, False, []
    if inside and not spoilt:
        yield start, 'a <DOC> without </DOC>'


def _text_of(markup: bytes) -> str:
    """The beginning of the text between tags; '' where there is none."""
    return TAG.sub(' ', markup.decode('utf-8', 'replace')).strip()[:_SHOWN]


def _document(raw: bytes) -> Document | str:
    try:
        document = raw.decode('utf-8')
    except UnicodeDecodeError as error:
        return f'not valid UTF-8 ({error.reason})'
    number = _DOCNO.search(document)
    if number is None:
        return 'a <DOC> without <DOCNO>'
    rest = document[number.end() :]
    if _DOCNO.search(rest):
        return f'a <DOC> with two <DOCNO>, {number[1][:_SHOWN]!r} the first: is </DOC> missing between them?'
    return number[1], ' '.join(TAG.sub(' ', f'{document[: number.start()]} {rest}').split())


def read_topic_fields(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, str] | str]]:
    """(number of the first line, {'num': …, 'title': …}) of each topic; at an error its line, the message, and the end.

    A field ends with its closing tag or with the next field; fields other than num and title are ignored.
    """
    fields: dict[str, str] | None = None
    field, start = '', 0
    for number, line in lines:
        position = 0
        for tag in [*_FIELD.finditer(line), None]:
            text = line[position : tag.start() if tag else len(line)]
            position = tag.end() if tag else len(line)
            if fields is not None and field in _KEPT_FIELDS:
                fields[field] += f'{text} '
            elif (fields is None or not field) and (found := TAG.sub(' ', text).strip()):
                where = '<top> … </top>' if fields is None else 'the fields of a <top>'
                yield number, f'text outside {where}: {found[:_SHOWN]!r}'
                return
            if tag is None:
                continue
            closing, name = tag[1], tag[2].lower()
            problem = _misplaced(closing, name, fields, field, bool(text.strip()))
            if problem:
                yield number, problem
                return
            if name == 'top':
                if fields is not None:
                    yield start, fields
                fields, field, start = (None if closing else {}), '', number
            elif fields is not None:
                field = ('' if name in _KEPT_FIELDS else field) if closing else name
                if field in _KEPT_FIELDS:
                    fields[field] = ''
    if fields is not None:
        yield start, fields


def _misplaced(closing: str, name: str, fields: dict[str, str] | None, field: str, after_text: bool) -> str | None:
    """What is wrong with a tag at its place; None if nothing is."""
    if fields is None:
        return (
            f'<{closing}{name}> outside <top> … </top>' if name in _KEPT_FIELDS or (closing and name == 'top') else None
        )
    if name == 'top':
        return None
    if closing:
        return f'</{name}> in a <{field}>' if field in _KEPT_FIELDS and name != field else None
    if name in fields:
        return f'a <top> with two <{name}>: is </top> missing between them?'
    if field in _KEPT_FIELDS and after_text and name not in (*_KEPT_FIELDS, *_OTHER_FIELDS):
        return f'the tag <{name}> inside a <{field}>: leave it out'
    return None

"""TREC's marked-up text: `<DOC> <DOCNO> … </DOC>` and `<top> <num> … <title> …`. Malformed text is always reported."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

# '<' before a letter, '/', '!' or '?', as in HTML: the 'm < n' of an abstract is text.
_TAG = re.compile(r'<[a-zA-Z/!?][^>]*>')
_COMMENT_OR_TAG = re.compile(f'<!--.*?-->|{_TAG.pattern}', re.DOTALL)
_HUGE_CHARACTER = re.compile('&#[0-9]{4000,};?')  # Python converts no more than 4300 digits to a number
_DOC = re.compile(rb'<(/?)DOC>', re.IGNORECASE)
_DOCNO, _DOCNO_END = re.compile('<DOCNO>', re.IGNORECASE), re.compile('</DOCNO>', re.IGNORECASE)
_FIELD = re.compile(r'<(/?)(\w+)[^>]*>')
_KEPT_FIELDS = ('num', 'title')
_OTHER_FIELDS = ('desc', 'narr')  # TREC's others; other tags are refused behind text of <num> or <title>
_SHOWN = 40

Document = tuple[str, str]  # docid and text


def without_tags(markup: str) -> str:
    """The text with a space for each tag and each comment, in time linear in its length.

    A pattern is applied only up to the last end of what it matches. Beyond that, each '<' would cost a search of the
    whole rest.
    """
    comments, tags = (markup.rfind(end) + len(end) if end in markup else 0 for end in ('-->', '>'))
    return _COMMENT_OR_TAG.sub(' ', markup[:comments]) + _TAG.sub(' ', markup[comments:tags]) + markup[tags:]


def plain_text(markup: str) -> str:
    """The text of HTML or XML on one line, without tags, its character references replaced."""
    return ' '.join(html.unescape(_HUGE_CHARACTER.sub('\ufffd', without_tags(markup))).split())


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
        position, indent = 0, len(raw) - len(raw.lstrip())
        for tag in [*_DOC.finditer(raw), None]:
            before = raw[position : tag.start() if tag else len(raw)]
            position = tag.end() if tag else len(raw)
            if not inside and not stray and (text := without_tags(before.decode('utf-8', 'replace')).strip()):
                stray = True
                yield number, f'text outside <DOC> … </DOC>: {text[:_SHOWN]!r}'
            if tag is None:
                parts += [before] if inside else []
            elif tag[1]:
                if inside and not spoilt:
                    yield start, _document(b''.join([*parts, before]))
                elif not inside and not stray:
                    yield number, '</DOC> without <DOC>'
                inside, spoilt, parts = False, False, []
            elif tag.start() > indent:
                if not spoilt:
                    yield number, '<DOC> inside a line: start a line with it'
                inside, spoilt, stray = True, True, False
            else:
                if inside and not spoilt:
                    yield start, 'a <DOC> without </DOC>'
                start, inside, spoilt, stray, parts = number, True, False, False, []
    if inside and not spoilt:
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
        return f'a <DOC> with two <DOCNO>, {docid[:_SHOWN]!r} the first: is </DOC> missing between them?'
    return docid, ' '.join(without_tags(f'{document[: start.start()]} {document[end.end() :]}').split())


def read_topic_fields(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, str] | str]]:
    """(number of the first line, {'num': …, 'title': …}) of each topic; at an error its line, the message, and the end.

    A field ends with its closing tag or with the next field; fields other than num and title are ignored.
    """
    fields: dict[str, list[str]] | None = None
    field, start = '', 0
    for number, line in lines:
        position = 0
        for tag in [*_FIELD.finditer(line, 0, line.rfind('>') + 1), None]:
            text = line[position : tag.start() if tag else len(line)]
            position = tag.end() if tag else len(line)
            if fields is not None and field in _KEPT_FIELDS:
                fields[field].append(text)
            elif (fields is None or not field) and (outside := without_tags(text).strip()):
                where = '<top> … </top>' if fields is None else 'the fields of a <top>'
                yield number, f'text outside {where}: {outside[:_SHOWN]!r}'
                return
            if tag is None:
                continue
            closing, name = tag[1], tag[2].lower()
            if problem := _misplaced(closing, name, fields, field, bool(text.strip())):
                yield number, problem
                return
            if name == 'top':
                if fields is not None:
                    yield start, _joined(fields)
                fields, field, start = (None if closing else {}), '', number
            elif fields is not None:
                field = ('' if name in _KEPT_FIELDS else field) if closing else name
                if field in _KEPT_FIELDS:
                    fields[field] = []
    if fields is not None:
        yield start, _joined(fields)


def _joined(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: ' '.join(parts) for name, parts in fields.items()}


def _misplaced(
    closing: str, name: str, fields: Mapping[str, Sequence[str]] | None, field: str, after_text: bool
) -> str | None:
    """What is wrong with a tag at its place; None if nothing is."""
    if fields is None:
        outside = name in _KEPT_FIELDS or (closing and name == 'top')
        return f'<{closing}{name}> outside <top> … </top>' if outside else None
    if name == 'top':
        return None
    if closing:
        return f'</{name}> in a <{field}>' if field in _KEPT_FIELDS and name != field else None
    if name in fields:
        return f'a <top> with two <{name}>: is </top> missing between them?'
    if field in _KEPT_FIELDS and after_text and name not in (*_KEPT_FIELDS, *_OTHER_FIELDS):
        return f'the tag <{name}> inside a <{field}>: leave it out'
    return None

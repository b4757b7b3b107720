"""Documents for clients: in the form of Pyserini's server, and cut into parts with the words of a
query marked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.spelling import mended

# Characters of a passage that is mended and marked: a call of a pattern holds all threads up.
SHOWN_CHARACTERS = 20_000
_IDENTIFIERS = frozenset({'id', '_id', 'docid'})
_CUT_FIELDS = frozenset({'body', 'content', 'contents', 'text'})
_WORD = re.compile(r'\w+')
_STOPWORDS = frozenset(
    'a an and are as at be but by did do does for had has have how if in into is it its no not of '
    'on or such that the their then there these they this to was were what when where which who '
    'why will with'.split()
)


def document(raw: str | None, parse: bool = True, max_length: int | None = None) -> Any:
    """A stored document for a client, as Pyserini 2.4's server forms it.

    Parameters
    ----------
    raw : the document as it is stored; None if there is none
    parse : whether JSON is read: an object loses its identifier, and gives way to its value if one
        field is left
    max_length : characters of a parsed text; None: all
    """
    if raw is None or not parse:
        return raw
    value = _parse(raw)
    if isinstance(value, dict):
        value = _without_identifier(value)
        if len(value) == 1:
            (value,) = value.values()
    if isinstance(value, dict):
        return _cut_fields(value, max_length)
    if isinstance(value, str):
        return value[:max_length]
    return value


def _parse(raw: str) -> Any:
    """The value of JSON; a text that is none, or that JSON cannot give again, as it is."""
    try:
        value = json.loads(raw)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return raw
    return value


def _without_identifier(value: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object but its identifier; numbers, truth values and null as texts."""
    fields = {}
    for name, item in value.items():
        if name not in _IDENTIFIERS:
            is_nested = isinstance(item, (dict, list))
            fields[name] = item if is_nested else str(item)
    return fields


def _cut_fields(fields: dict[str, Any], max_length: int | None) -> dict[str, Any]:
    """The fields; those that are the document's text are cut."""
    cut = {}
    for name, item in fields.items():
        is_text = isinstance(item, str) and name.lower() in _CUT_FIELDS
        cut[name] = item[:max_length] if is_text else item
    return cut


@dataclass(frozen=True)
class TextPart:
    """A part of a text, and whether it is a word of the query."""

    text: str
    match: bool


def mark_words(query: str, text: str) -> list[TextPart]:
    """The text in parts, with the words of the query as parts of their own; joined, they are the
    text.

    Words match regardless of case and a plural ending; frequent words do not count.
    """
    wanted = {_stem(word) for word in _WORD.findall(query)} - _STOPWORDS
    parts = []
    end = 0
    for match in _WORD.finditer(text):
        if _stem(match.group()) in wanted:
            if match.start() > end:
                parts.append(TextPart(text[end : match.start()], match=False))
            parts.append(TextPart(match.group(), match=True))
            end = match.end()
    if end < len(text) or not parts:
        parts.append(TextPart(text[end:], match=False))
    return parts


def display_parts(query: str, text: str | None) -> list[dict[str, Any]]:
    """A passage mended for reading, in parts, the query's words marked; at most
    `SHOWN_CHARACTERS` of it.
    """
    whole = text or ''
    shown = mended(whole[:SHOWN_CHARACTERS])
    parts = [{'text': part.text, 'match': part.match} for part in mark_words(query, shown)]
    if len(whole) > SHOWN_CHARACTERS:
        parts.append({'text': ' …', 'match': False})
    return parts


def _stem(word: str) -> str:
    """The word in lower case, without a plural ending."""
    folded = word.casefold()
    if len(folded) > 4 and folded.endswith('ies'):
        return folded[:-3] + 'y'
    if len(folded) > 3 and folded.endswith('s') and not folded.endswith('ss'):
        return folded[:-1]
    return folded

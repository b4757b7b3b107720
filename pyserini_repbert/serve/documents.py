"""Passages for clients: stored documents in the form of Pyserini's server, and passage text with marked words."""

from __future__ import annotations

import json
import re
from typing import Any

from pyserini_repbert.data.passages import mended

_IDENTIFIERS = frozenset({'id', '_id', 'docid'})
_CUT = frozenset({'body', 'content', 'contents', 'text'})

SHOWN_CHARACTERS = 20_000  # of a passage that is mended and marked; a pattern's call holds all threads up

_WORD = re.compile(r'\w+')
_STOPWORDS = frozenset(
    'a an and are as at be but by did do does for had has have how if in into is it its no not of on or such that the '
    'their then there these they this to was were what when where which who why will with'.split()
)


def document(raw: str | None, parse: bool = True, most: int | None = None) -> Any:
    """A stored document for a client, as Pyserini 2.4's server forms it.

    Parameters
    ----------
    raw : as stored; None if there is none
    parse : whether to parse JSON: an object loses its identifier, and gives way to its value if one field is left
    most : characters kept of a parsed text; None: all
    """
    if raw is None or not parse:
        return raw
    try:
        value = json.loads(raw)
        if isinstance(value, (list, dict, float)):
            json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = raw
    if isinstance(value, dict):
        fields = {
            key: item if isinstance(item, (dict, list)) else str(item)
            for key, item in value.items()
            if key not in _IDENTIFIERS
        }
        value = next(iter(fields.values())) if len(fields) == 1 else fields
    if isinstance(value, str):
        return value[:most]
    if isinstance(value, dict):
        return {
            key: item[:most] if isinstance(item, str) and key.lower() in _CUT else item for key, item in value.items()
        }
    return value


def raw_document(docid: str, text: str) -> str:
    """A passage of a bundle as Lucene stores one."""
    return json.dumps({'id': docid, 'contents': text}, ensure_ascii=False)


def marked(query: str, text: str) -> list[tuple[str, bool]]:
    """(part, whether it is a word of the query) of a text; the parts, joined, are the text.

    Words match regardless of case and a plural ending; frequent words do not count.
    """
    wanted = {_stem(word) for word in _WORD.findall(query)} - _STOPWORDS
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in _WORD.finditer(text):
        if _stem(match.group()) in wanted:
            if match.start() > end:
                parts.append((text[end : match.start()], False))
            parts.append((match.group(), True))
            end = match.end()
    if end < len(text) or not parts:
        parts.append((text[end:], False))
    return parts


def shown_parts(query: str, text: str | None) -> list[dict[str, Any]]:
    """A passage mended for reading, in parts, the query's words marked; at most `SHOWN_CHARACTERS` of it."""
    whole = text or ''
    parts = [{'text': part, 'match': match} for part, match in marked(query, mended(whole[:SHOWN_CHARACTERS]))]
    return parts if len(whole) <= SHOWN_CHARACTERS else [*parts, {'text': ' …', 'match': False}]


def _stem(word: str) -> str:
    folded = word.casefold()
    if len(folded) > 4 and folded.endswith('ies'):
        return folded[:-3] + 'y'
    return folded[:-1] if len(folded) > 3 and folded.endswith('s') and not folded.endswith('ss') else folded

"""Documents for clients: in the form of Pyserini's server, and cut into parts with the words of a
query marked.
"""

from __future__ import annotations

import json
from typing import Any

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.snippets import cut_around, cut_lines_around, find_words, mark_words
from pyserini_repbert.data.spelling import mended
from pyserini_repbert.indexes.stores import document_values
from pyserini_repbert.lucene.query_words import WordFinder
from pyserini_repbert.serve.answer_models import Part

# Characters of a passage that is mended and marked: a call of a pattern holds all threads up.
SHOWN_CHARACTERS = 20_000
# Characters of a document's passage that are shown of it.
SNIPPET_CHARACTERS = 480
_IDENTIFIERS = frozenset({'id', '_id', 'docid'})
_CUT_FIELDS = frozenset({'body', 'content', 'contents', 'text'})


def document(raw: str | None, parse: bool = True, max_length: int | None = None) -> Any:
    """A stored document for a client, as Pyserini 2.4's server forms it.

    Parameters
    ----------
    raw : the document as stored; None if there is none
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
    """The value of JSON; text that is not JSON, or that JSON cannot represent, is returned
    unchanged.
    """
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


def parsed_document(document: Document, max_length: int | None = None) -> Any:
    """A collection's document for a client: its values, or its text if it has no others.

    `max_length` is how many characters of the text are given; None: all.
    """
    values = document_values(document)
    values['text'] = document.text[:max_length]
    return values if len(values) > 1 else values['text']


def snippet_parts(
    query: str, text: str, find: WordFinder = find_words, is_code: bool = False
) -> list[Part]:
    """A passage of a document as `display_parts`, cut around the words of the query.

    Of a program's source, whole lines are left (`is_code`).
    """
    whole = mended(text)
    matches = find(query, whole)
    if is_code:
        snippet = cut_lines_around(whole, SNIPPET_CHARACTERS, matches).strip('\n')
    else:
        snippet = cut_around(query, whole, SNIPPET_CHARACTERS, matches)
    return display_parts(query, snippet, find)


def display_parts(query: str, text: str | None, find: WordFinder = find_words) -> list[Part]:
    """A passage cleaned up for reading, in parts, the query's words marked; at most
    `SHOWN_CHARACTERS` of it.

    Parameters
    ----------
    query : a question
    text : the passage
    find : finds the words of the query in it
    """
    whole = text or ''
    shown = mended(whole[:SHOWN_CHARACTERS])
    parts: list[Part] = [
        {'text': part.text, 'match': part.match}
        for part in mark_words(query, shown, find(query, shown))
    ]
    if len(whole) > SHOWN_CHARACTERS:
        parts.append({'text': ' …', 'match': False})
    return parts

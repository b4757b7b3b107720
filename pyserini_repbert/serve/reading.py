"""A document of any length for a reader: part by part, with its headings and its best passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Heading, TextSpan
from pyserini_repbert.data.suffixes import SOURCES, has_suffix_or_packed
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.ranking import Excerpt, Ranking
from pyserini_repbert.serve.answer_models import (
    API,
    OutlinedHeading,
    OutlinedPassage,
    OutlineResponse,
    TextPartResponse,
)
from pyserini_repbert.serve.indexes import ServedIndex

# Characters of a part.
USUAL_PART = 20_000
LONGEST_PART = 50_000
# How far back the end of a line is looked for at which a part is cut, and at most which share.
_LOOKED_BACK = 2_000
_SHARE = 8
# Of an outline.
_MOST_HEADINGS = 2_000


@dataclass(frozen=True)
class PartRequest:
    """Which part of a text to read: from a character on, up to one, or around one.

    Attributes
    ----------
    start, end, at : characters of the text, one of which is given
    characters : about how many there are
    """

    start: int | None
    end: int | None
    at: int | None
    characters: int


def find_part(text: str, asked: PartRequest) -> TextSpan:
    """The requested part of a text, cut at line ends.

    The character that is named is exact, so that one part can follow the other.
    """
    if asked.end is not None:
        end = min(asked.end, len(text))
        return TextSpan(_cut_before(text, end - asked.characters, asked.characters), end)
    start = asked.start
    if start is None:
        before = (asked.at or 0) - asked.characters // 3
        start = _cut_before(text, min(before, len(text)), asked.characters)
    start = min(start, len(text))
    end = start + asked.characters
    if end >= len(text):
        return TextSpan(start, len(text))
    return TextSpan(start, _cut_before(text, end, asked.characters))


def _cut_before(text: str, position: int, characters: int) -> int:
    """Where the last line, or else the last word, begins before a position, if one is near.

    `characters` is the length of the part that is cut.
    """
    if position <= 0:
        return 0
    first = max(0, position - min(_LOOKED_BACK, characters // _SHARE))
    for mark in ('\n', ' '):
        found = text.rfind(mark, first, position)
        if found >= 0:
            return found + 1
    return position


def outline_of(headings: Sequence[Heading]) -> list[Heading]:
    """The headings, without the lower levels if there are too many."""
    counts = Counter(heading.level for heading in headings)
    total = 0
    lowest = 0
    for level in sorted(counts):
        total += counts[level]
        if total > _MOST_HEADINGS and lowest:
            break
        lowest = level
    kept = [heading for heading in headings if heading.level <= lowest]
    return kept[:_MOST_HEADINGS]


def part_answer(
    index: ServedIndex, docid: str, asked: PartRequest, query: str = ''
) -> TextPartResponse:
    """The answer to a request for a part of a document's text.

    Parameters
    ----------
    index : what holds the document
    docid : of the document
    asked : which part
    query : whose words are found in it

    Raises MissingResourceError for a docid that the index lacks.
    """
    document = _document(index, docid)
    text = document.text
    (origin,) = index.store.origins([document.docid])
    span = find_part(text, asked)
    part = text[span.start : span.end]
    words = [
        [span.start + match.start, span.start + match.end]
        for match in index.find_words(query, part)
    ]
    return {
        'api': API,
        'index': index.alias,
        'docid': document.docid,
        'start': span.start,
        'end': span.end,
        'length': len(text),
        'text': part,
        'words': words,
        'code': [list(own) for own in origin.code_within(span.start, span.end)],
    }


def lines_of(index: ServedIndex, docid: str, first: int, last: int) -> str:
    """Lines of a document, by their numbers in its file, as hits give them.

    Without such numbers, they are numbers of the text.

    Parameters
    ----------
    index : what holds the document
    docid : of the document
    first, last : the first and the last line, from 1

    Raises MissingResourceError for a docid that the index lacks.
    """
    document = _document(index, docid)
    text = document.text
    (origin,) = index.store.origins([document.docid])
    lines = []
    start = 0
    for number, line in enumerate(text.split('\n'), 1):
        if first <= (origin.line_at(text, start) or number) <= last:
            lines.append(line)
        start += len(line) + 1
    return '\n'.join(lines)


def outline_answer(
    index: ServedIndex,
    docid: str,
    query: str = '',
    n_passages: int = 0,
    fields: Sequence[str] = (ALL_FIELDS,),
) -> OutlineResponse:
    """The answer to a request for what a document is: its title, its fields, its headings, its
    best passages.

    Parameters
    ----------
    index : what holds the document
    docid : of the document
    query : the question that the passages fit best
    n_passages : the most passages
    fields : names of its fields that come with it; `ALL_FIELDS`: all

    Raises MissingResourceError for a docid that the index lacks.
    """
    document = _document(index, docid)
    (origin,) = index.store.origins([document.docid])
    (address,) = index.store.addresses([document.docid])
    (own_fields,) = index.store.fields([document.docid], fields)
    return {
        'api': API,
        'index': index.alias,
        'docid': document.docid,
        'title': document.title,
        'length': len(document.text),
        'file': origin.file,
        'line': origin.line_at(document.text, 0),
        'row': origin.row or None,
        'url': index.shown_address(address),
        'is_code': is_code(origin.file),
        'fields': own_fields,
        'headings': [_outlined(heading) for heading in outline_of(origin.headings)],
        'pages': [{'start': page.start, 'page': page.page} for page in origin.pages],
        'passages': _best_passages(index, document.docid, query, n_passages),
    }


def is_code(file: str) -> bool:
    """Whether a document is the source of a program, whose lines are kept."""
    return has_suffix_or_packed(file, SOURCES)


def _document(index: ServedIndex, docid: str) -> Document:
    """A document by its docid, as stored or as a person reads it."""
    (document,) = index.store.documents([index.store.stored_docid(docid)])
    if document is None:
        raise MissingResourceError(f"index '{index.alias}' has no document '{docid[:200]}'")
    return document


def _outlined(heading: Heading) -> OutlinedHeading:
    return {
        'start': heading.start,
        'level': heading.level,
        'title': heading.title,
        'anchor': heading.anchor,
    }


def _best_passages(
    index: ServedIndex, docid: str, query: str, n_passages: int
) -> list[OutlinedPassage]:
    """What answers a question in the passages of a document that fit it best, in the order of the
    text; among them is what a hit of the document shows.
    """
    if index.passage_finder is None or not query or not n_passages:
        return []
    document = Ranking([docid], [0.0])
    shown = index.passage_finder.with_shown_texts(query, document)[0].excerpts
    nearest = index.passage_finder.with_stored_texts(query, document, n_passages)[0].excerpts
    numbers = {passage.number for passage in shown}
    others = [passage for passage in nearest if passage.number not in numbers]
    passages: list[OutlinedPassage] = []
    for rank, passage in enumerate([*shown, *others][:n_passages], 1):
        passages.append(_outlined_passage(passage, rank))
    return sorted(passages, key=lambda passage: passage['start'])


def _outlined_passage(passage: Excerpt, rank: int) -> OutlinedPassage:
    start, end = passage.shown_span
    return {'start': start, 'end': end, 'rank': rank}

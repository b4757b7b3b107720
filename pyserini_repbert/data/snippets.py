"""What of a passage is shown for a query: its words marked, and a long text cut around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.data.united_texts import unite_with_places
from pyserini_repbert.data.word_forms import unite

LEFT_OUT = '…'
_WORD = re.compile(r'\w+')
_STOPWORDS = frozenset(
    'a an and are as at be but by did do does for had has have how if in into is it its no not of '
    'on or such that the their then there these they this to was were what when where which who '
    'why will with'.split()
)


@dataclass(frozen=True)
class TextPart:
    """A part of a text, and whether it is a word of the query."""

    text: str
    match: bool


@dataclass(frozen=True)
class WordMatch:
    """A word of the query in a text: where it is, and its stem."""

    start: int
    end: int
    stem: str


def wanted_words(query: str) -> set[str]:
    """The words of a query that `find_words` looks for, by their stems."""
    return {_stem(word) for word in _WORD.findall(unite(query))} - _STOPWORDS


def find_words(query: str, text: str) -> list[WordMatch]:
    """The words of a query in a text, in order.

    They match regardless of case, a plural ending, and their form (see `unite`); frequent English
    words do not count. Words that overlap are one.
    """
    wanted = wanted_words(query)
    united = unite_with_places(text)
    matches: list[WordMatch] = []
    for match in _WORD.finditer(united.form):
        stem = _stem(match.group())
        if stem in wanted:
            start, end = united.written_span(match.start(), match.end())
            add_match(matches, WordMatch(start, end, stem))
    return matches


def add_match(matches: list[WordMatch], match: WordMatch) -> None:
    """Add a word behind others. One that overlaps the last is one with it: '½' has two words."""
    if not matches or match.start >= matches[-1].end:
        matches.append(match)
        return
    last = matches.pop()
    matches.append(WordMatch(last.start, max(last.end, match.end), last.stem))


def mark_words(query: str, text: str, matches: Sequence[WordMatch] | None = None) -> list[TextPart]:
    """The text in parts, with each word of the query as a separate part; joined, they are the
    text.

    `matches` are these words in order; default: the words that `find_words` finds.
    """
    parts = []
    end = 0
    for match in find_words(query, text) if matches is None else matches:
        if match.start > end:
            parts.append(TextPart(text[end : match.start], match=False))
        parts.append(TextPart(text[match.start : match.end], match=True))
        end = match.end
    if end < len(text) or not parts:
        parts.append(TextPart(text[end:], match=False))
    return parts


def cut_around(query: str, text: str, most: int, matches: Sequence[WordMatch] | None = None) -> str:
    """At most `most` characters of a text, around the densest words of the query.

    The densest words are in the stretch that has the most different words, then the most words,
    then comes first; they are in the middle. An ellipsis marks what is left out. Words are cut only
    if there is no space. A text that is short enough is returned unchanged. Of a text without words
    of the query, the beginning is returned.

    Parameters
    ----------
    query : a question
    text : a passage
    most : characters
    matches : the words of the query in the text, in order; default: as `find_words` finds them
    """
    if len(text) <= most:
        return text
    room = max(most - 2 * len(f'{LEFT_OUT} '), 1)
    if matches is None:
        matches = find_words(query, text)
    densest = _densest(matches, room)
    start = 0
    if densest:
        middle = (densest[0].start + densest[-1].end) // 2
        start = min(max(middle - room // 2, 0), len(text) - room)
    end = start + room
    if start > 0:
        start = _next_word(text, start, densest[0].start)
    if end < len(text):
        end = _last_word(text, end, densest[-1].end if densest else start + 1)
    before = f'{LEFT_OUT} ' if start > 0 else ''
    after = f' {LEFT_OUT}' if end < len(text) else ''
    return f'{before}{text[start:end].strip()}{after}'


def cut_lines_around(
    text: str, most: int, matches: Sequence[WordMatch], most_lines: int | None = None
) -> str:
    """Whole lines of a program's text, around the densest words of a query.

    A line with an ellipsis marks what is left out.

    Parameters
    ----------
    text : a passage
    most : characters; the line of the first of the words stays, however long it is
    matches : the words of the query in the text, in order
    most_lines : that are left of the text; None: any number
    """
    lines = text.split('\n')
    densest = _densest(matches, most)
    first = text.count('\n', 0, densest[0].start) if densest else 0
    last = text.count('\n', 0, densest[-1].end) if densest else 0
    # The lines of the words, then alternately one above and one below.
    order = list(range(first, last + 1))
    for distance in range(1, len(lines)):
        order += [first - distance, last + distance]
    rows: list[int] = []
    room = most
    for row in order:
        if not 0 <= row < len(lines):
            continue
        room -= len(lines[row]) + 1
        if rows and (room < 0 or len(rows) == most_lines):
            break
        rows.append(row)
    first = min(rows)
    last = max(rows)
    before = [LEFT_OUT] if first > 0 else []
    after = [LEFT_OUT] if last < len(lines) - 1 else []
    return '\n'.join([*before, *lines[first : last + 1], *after])


def _densest(matches: Sequence[WordMatch], room: int) -> Sequence[WordMatch]:
    """The neighbours within `room` characters that are the most different words, then the most."""
    best: Sequence[WordMatch] = ()
    most = (0, 0)
    last = 0
    for first, match in enumerate(matches):
        last = max(last, first + 1)
        while last < len(matches) and matches[last].end - match.start <= room:
            last += 1
        stretch = matches[first:last]
        count = (len({other.stem for other in stretch}), len(stretch))
        if count > most:
            best = stretch
            most = count
    return best


def _next_word(text: str, start: int, latest: int) -> int:
    """Where a word begins, from `start` to `latest`; `start` if none does."""
    for position in range(start, latest + 1):
        if text[position - 1].isspace():
            return position
    return start


def _last_word(text: str, end: int, earliest: int) -> int:
    """Where a word ends, from `end` back to `earliest`; `end` if none does."""
    for position in range(end, earliest - 1, -1):
        if text[position].isspace():
            return position
    return end


def _stem(word: str) -> str:
    """The word in lower case, without a plural ending."""
    folded = word.casefold()
    if len(folded) > 4 and folded.endswith('ies'):
        return folded[:-3] + 'y'
    if len(folded) > 3 and folded.endswith('s') and not folded.endswith('ss'):
        return folded[:-1]
    return folded

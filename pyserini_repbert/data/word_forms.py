"""One form for what readers take for the same word.

An accent may be a sign of its own or not. A word may have soft hyphens, full width, ligatures or
curly apostrophes. Lucene and filters compare texts in one form. What is stored and shown stays as
it was written.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

# Apostrophes, quotation marks and hyphens that keyboards, and programs, set for ' " and -.
_SIGNS = str.maketrans(
    {
        '‘': "'",
        '’': "'",
        '‛': "'",
        'ʼ': "'",
        'ʻ': "'",
        '“': '"',
        '”': '"',
        '„': '"',
        '‟': '"',
        '‐': '-',
    }
)
_ZERO_WIDTH_SPACE = '\u200b'
_NON_JOINER = '\u200c'
# What is not seen: soft hyphens, joiners, marks of direction, byte order marks, selectors of
# variants. Arabic signs that stand before numbers are seen.
_UNSEEN = (
    '\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f'
    '\u3164\uffa0\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff'
)
_UNSEEN_SIGNS = re.compile(f'[{_UNSEEN}]+')
# Thai, Lao, Myanmar, Khmer: writers set a zero-width space between words.
_WITHOUT_SPACES = '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f'
_BETWEEN_WORDS = re.compile(f'(?<=[{_WITHOUT_SPACES}]){_ZERO_WIDTH_SPACE}+(?=[{_WITHOUT_SPACES}])')
# Lucene's analyzer of Persian makes a space of it.
_KEEP_NON_JOINER = 'fa'
# Signs that NFKC may join with the one before, beside those of the category of marks: Hangul's
# parts, and Katakana's voiced marks of half width.
_JOINING = re.compile('[\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc]')
_NOT_ASCII = re.compile('[\x00-\x7f]?[^\x00-\x7f]+')


class WordForms(StrEnum):
    """In which form Lucene and filters compare words."""

    # As earlier releases did.
    WRITTEN = 'written'
    UNITED = 'united'

    def of(self, text: str, language: str = '') -> str:
        """A text in this form. See `unite` for the language."""
        return text if self is WordForms.WRITTEN else unite(text, language)


def unite(text: str, language: str = '') -> str:
    """A text in the form in which words are compared.

    That is Unicode's NFKC without signs that are not seen, with plain apostrophes, double quotes
    and hyphens.

    Parameters
    ----------
    text : any
    language : of Lucene's analyzer; Persian's makes a space of a zero-width non-joiner, which stays
    """
    if text.isascii():
        return text
    spaced = _with_spaces(text)
    if language == _KEEP_NON_JOINER:
        seen = _NON_JOINER.join(_UNSEEN_SIGNS.sub('', part) for part in spaced.split(_NON_JOINER))
    else:
        seen = _UNSEEN_SIGNS.sub('', spaced)
    return unicodedata.normalize('NFKC', seen).translate(_SIGNS)


def unite_value(text: str) -> str:
    """A value of a field as filters compare it: united, and regardless of case."""
    return unicodedata.normalize('NFKC', unite(text).casefold())


@dataclass(frozen=True)
class _Part:
    """A part of a united text.

    Attributes
    ----------
    start : its first character in the united text
    written : its first character in what was written
    length : how many characters were written
    is_changed : whether they differ from those of the united text
    """

    start: int
    written: int
    length: int
    is_changed: bool


@dataclass(frozen=True)
class UnitedText:
    """A text in the form of `unite`, which knows where its characters were written.

    `parts` are its parts in order; none for a text that was written so.
    """

    form: str
    parts: tuple[_Part, ...] = ()

    def written_span(self, start: int, end: int) -> tuple[int, int]:
        """Where in what was written the characters `form[start:end]` begin and end; at least one
        character.
        """
        if not self.parts:
            return start, end
        first = self._part_at(start)
        last = self._part_at(end - 1)
        begin = first.written
        if not first.is_changed:
            begin += start - first.start
        stop = last.written + last.length
        if not last.is_changed:
            stop = last.written + end - last.start
        return begin, stop

    def _part_at(self, position: int) -> _Part:
        return self.parts[bisect_right(self.parts, position, key=_start_of) - 1]


def _start_of(part: _Part) -> int:
    return part.start


def unite_with_places(text: str, language: str = '') -> UnitedText:
    """A text in the form of `unite`, with the places where its characters were written."""
    form = unite(text, language)
    if form == text:
        return UnitedText(form)
    spaced = _with_spaces(text)
    parts: list[_Part] = []
    length = 0
    for start, end in _pieces(spaced):
        piece = spaced[start:end]
        united = unite(piece, language)
        if united:
            parts.append(_Part(length, start, end - start, is_changed=united != text[start:end]))
            length += len(united)
    return UnitedText(form, tuple(parts))


def _with_spaces(text: str) -> str:
    """A text of the same length with spaces between words of languages that write none."""
    return _BETWEEN_WORDS.sub(lambda match: ' ' * len(match[0]), text)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each stretch of ASCII, and of each sign with those that may join it."""
    end = 0
    for match in _NOT_ASCII.finditer(text):
        if end < match.start():
            yield end, match.start()
        end = match.start()
        while end < match.end():
            start = end
            end += 1
            while end < match.end() and _may_join(text[end]):
                end += 1
            yield start, end
    if end < len(text):
        yield end, len(text)


def _may_join(sign: str) -> bool:
    """Whether NFKC may make one sign of this one and the one before, or it is not seen."""
    is_mark = unicodedata.category(sign).startswith('M')
    return is_mark or _JOINING.match(sign) is not None or _UNSEEN_SIGNS.match(sign) is not None

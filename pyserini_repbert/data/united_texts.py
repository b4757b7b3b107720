"""Texts with words in one form, and where their characters were written."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from pyserini_repbert.data.word_forms import UNSEEN_SIGNS, unite, with_spaces

# Signs that NFKC may join with the one before, in addition to the category of marks: Hangul's
# parts, and Katakana's voiced marks of half width.
_JOINING = re.compile('[\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7ff\uff9e\uff9f\uffa0-\uffdc]')
_NOT_ASCII = re.compile('[\x00-\x7f]?[^\x00-\x7f]+')


@dataclass(frozen=True)
class _Part:
    """A part of a united text.

    Attributes
    ----------
    start : its first character in the united text
    written : its first character in the original text
    length : how many characters were written
    is_changed : whether they differ from the united text
    """

    start: int
    written: int
    length: int
    is_changed: bool


@dataclass(frozen=True)
class UnitedText:
    """Text in the form of `unite`, with the positions of its characters in the original text.

    `parts` are its parts in order; none if the original text already had this form.
    """

    form: str
    parts: tuple[_Part, ...] = ()

    def written_span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `form[start:end]` begin and end in the original text; at least one
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
        return self.parts[bisect_right(self.parts, position, key=attrgetter('start')) - 1]


def unite_with_places(text: str, language: str = '') -> UnitedText:
    """Text in the form of `unite`, with the positions of its characters in the original text."""
    if unite(text, language) == text:
        return UnitedText(text)
    spaced = with_spaces(text)
    parts: list[_Part] = []
    # The form is built from the parts, so that positions also fit in meaningless text.
    forms: list[str] = []
    length = 0
    for start, end in _pieces(spaced):
        piece = spaced[start:end]
        united = unite(piece, language)
        if united:
            parts.append(_Part(length, start, end - start, is_changed=united != text[start:end]))
            forms.append(united)
            length += len(united)
    return UnitedText(''.join(forms), tuple(parts))


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
    return is_mark or _JOINING.match(sign) is not None or UNSEEN_SIGNS.match(sign) is not None

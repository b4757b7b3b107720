"""One form for what readers take for the same word.

An accent may be a separate character or not. A word may have soft hyphens, full width, ligatures or
curly apostrophes. Lucene and filters compare texts in one form. Stored and shown text is not
changed.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from urllib.parse import unquote

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
# Invisible signs: soft hyphens, joiners, marks of direction, byte order marks, variant selectors.
# Arabic signs before numbers are visible.
_UNSEEN = (
    '\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f'
    '\u3164\uffa0\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff'
)
UNSEEN_SIGNS = re.compile(f'[{_UNSEEN}]+')
# Thai, Lao, Myanmar, Khmer: writers set a zero-width space between words.
_WITHOUT_SPACES = '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f'
_BETWEEN_WORDS = re.compile(f'(?<=[{_WITHOUT_SPACES}]){_ZERO_WIDTH_SPACE}+(?=[{_WITHOUT_SPACES}])')
# NFKC sorts the marks of a letter, in time that grows with the square of their number. So a sign
# that is not seen is set behind 30 of them (Unicode Standard Annex 15, definition D4). No word has
# so many; the pattern takes other signs, too, and two that NFKC makes marks of.
_MANY_MARKS = re.compile(r'(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){30}')
_BETWEEN_MARKS = '\u034f'
# Lucene's analyzer of Persian makes a space of it.
_KEEP_NON_JOINER = 'fa'


class WordForms(StrEnum):
    """In which form Lucene and filters compare words."""

    # As earlier releases did.
    WRITTEN = 'written'
    UNITED = 'united'

    def of(self, text: str, language: str = '') -> str:
        """Text in this form. See `unite` for the language."""
        return text if self is WordForms.WRITTEN else unite(text, language)


def unite(text: str, language: str = '') -> str:
    """Text in the form in which words are compared.

    That is Unicode's NFKC without signs that are not seen, with plain apostrophes, double quotes
    and hyphens.

    Parameters
    ----------
    text : any
    language : of Lucene's analyzer; Persian's makes a space of a zero-width non-joiner, which stays
    """
    if text.isascii():
        return text
    spaced = with_spaces(text)
    if language == _KEEP_NON_JOINER:
        seen = _NON_JOINER.join(UNSEEN_SIGNS.sub('', part) for part in spaced.split(_NON_JOINER))
    else:
        seen = UNSEEN_SIGNS.sub('', spaced)
    return _normalize(seen).translate(_SIGNS)


def unite_value(text: str) -> str:
    """A value of a field as filters compare it: united, and regardless of case."""
    return _normalize(unite(text).casefold())


def _normalize(text: str) -> str:
    """NFKC of text without invisible signs, in time that grows with its length."""
    parted = _MANY_MARKS.sub(lambda match: match[0] + _BETWEEN_MARKS, text)
    return unicodedata.normalize('NFKC', parted).replace(_BETWEEN_MARKS, '')


def docid_form(docid: str) -> str:
    """The form in which docids are compared: as people read it, with words united."""
    return unite(unquote(docid))


def with_spaces(text: str) -> str:
    """Text of the same length, with spaces between words of languages that write none."""
    return _BETWEEN_WORDS.sub(lambda match: ' ' * len(match[0]), text)

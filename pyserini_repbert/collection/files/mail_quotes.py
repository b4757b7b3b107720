"""What a reply quotes below its own text: the mail that it answers, with all that this one quotes.

Quoted lines begin with '>', or follow a header as Outlook writes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTE = '>'
# The verb of 'On 3 March, Ada wrote:', which stands above quoted lines.
_WROTE = re.compile(
    r'\b(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|skrev|napisał\(a\)|napisał)\b'
)
_MOST_INTRODUCTION = 3  # lines, as programs wrap it
_OUTLOOK_LINE = re.compile(
    r'-{2,10} ?(?:original message|ursprüngliche nachricht|originalnachricht|message d.origine|'
    r'mensaje original|messaggio originale|oorspronkelijk bericht) ?-{2,10}',
    re.IGNORECASE,
)
_SENDER = re.compile(r'\*{0,2}(?:From|Von|De|Da|Van) ?:', re.IGNORECASE)
_SENT = re.compile(
    r'\*{0,2}(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado|Fecha|Inviato|Verzonden) ?:', re.IGNORECASE
)
_LINES_OF_HEADER = 5


def without_quote(text: str) -> str:
    """A text without the mail that it quotes at its end, and without the line that introduces it.

    A text that is nothing else stays, and so do quotes with answers below them.
    """
    lines = text.split('\n')
    end = _begin_of_quote(lines)
    own = '\n'.join(lines[:end]).rstrip()
    return own or text


def _begin_of_quote(lines: Sequence[str]) -> int:
    """The number of the line at which the quote at the end begins; of lines without one, all."""
    for number in range(len(lines)):
        if _begins_outlook(lines, number):
            return number
    begin = len(lines)
    while begin and (lines[begin - 1].startswith(_QUOTE) or not lines[begin - 1].strip()):
        begin -= 1
    if not any(line.startswith(_QUOTE) for line in lines[begin:]):
        return len(lines)
    introduction: list[str] = []
    for number in range(begin - 1, max(begin - 1 - _MOST_INTRODUCTION, -1), -1):
        introduction.insert(0, lines[number])
        is_whole = introduction[-1].rstrip().endswith(':')
        if is_whole and _WROTE.search(' '.join(introduction)):
            return _first_line(lines, number)
    return begin


def _first_line(lines: Sequence[str], number: int) -> int:
    """The line at which an introduction begins whose verb is in a line: below an empty line.

    A program wraps a long date or address; a sentence above it is a paragraph of its own.
    """
    for first in range(number, max(number - _MOST_INTRODUCTION, 0), -1):
        if not lines[first - 1].strip():
            return first
    return number


def _begins_outlook(lines: Sequence[str], number: int) -> bool:
    """Whether a quoted mail with its header begins at a line, as Outlook writes it."""
    line = lines[number].strip()
    if _OUTLOOK_LINE.fullmatch(line):
        return True
    below = lines[number + 1 : number + _LINES_OF_HEADER]
    return bool(_SENDER.match(line)) and any(_SENT.match(other.strip()) for other in below)

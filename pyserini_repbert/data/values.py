"""Values from text: numbers in ASCII digits, as evaluators read them, identifiers, settings with a few named values.

Python's own int() and float() also take '1_0', '٣' and ' 1 ', and numbers of any size.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from pyserini_repbert.errors import InputError

MAX_COUNT = 2**31 - 1  # of hits, passages, threads: what a Java int holds
MAX_THREADS = 1024  # more are never faster, and millions would keep the system busy creating them
_INTEGER = re.compile(r'[+-]?[0-9]+')
_LARGE = re.compile(r'\+?0*[1-9][0-9]{9,}')  # as long as MAX_COUNT, or longer
_DECIMAL = re.compile(r'[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?')
_LONGEST = 20  # digits: no range asked for reaches numbers this long
_SHOWN = 40
_VALUE = re.compile(r'[^ \t\n\r\x0b\x0c]+')
# NUL (a file in UTF-16), a byte order mark inside a file (several put together), and halves of surrogate pairs.
_STRANGE = re.compile('[\x00\ufeff\ud800-\udfff]')


def integer(text: str, least: int = -MAX_COUNT, most: int = MAX_COUNT) -> int:
    """A whole number from `least` to `most`. Raises ValueError saying what was expected."""
    if _INTEGER.fullmatch(text) and len(text.lstrip('+-').lstrip('0')) < _LONGEST:
        value = int(text)
        if least <= value <= most:
            return value
    wanted = f' of at least {least}' if most == MAX_COUNT and not _LARGE.fullmatch(text) else f' from {least} to {most}'
    ordinary = (least, most) == (-MAX_COUNT, MAX_COUNT)
    raise ValueError(f"'{_shortened(text)}' is not a whole number{'' if ordinary else wanted}")


def decimal(text: str) -> float:
    """A finite number: '0.5', '-3', '1e-6'. Raises ValueError for anything else."""
    value = float(text) if _DECIMAL.fullmatch(text) else float('inf')
    if not -float('inf') < value < float('inf'):
        raise ValueError(f"'{_shortened(text)}' is not a finite number")
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f'{text[:_SHOWN]}…'


def columns(line: str) -> list[str]:
    """The values of a line, split at ASCII white space as evaluators do (str.split also splits at Unicode's).

    Raises ValueError for a character that no identifier can have.
    """
    if strange := _STRANGE.search(line):
        raise ValueError(_named(strange))
    return _VALUE.findall(line)


def identifier_problem(name: str) -> str | None:
    """Why a run file cannot hold a qid or a docid; None if it can."""
    if not name:
        return 'is empty'
    if len(name.split()) != 1 or name != name.strip():
        return 'contains white space, which run files cannot hold'
    strange = _STRANGE.search(name)
    return f'contains {_named(strange)}, which no identifier can have' if strange else None


def has_surrogates(text: str) -> bool:
    """Whether a text holds half of a surrogate pair: JSON's '\\ud800' alone, or a byte of an argument not in UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode('utf-8')
    except UnicodeEncodeError:
        return True
    return False


def _named(strange: re.Match[str]) -> str:
    return f'the character U+{ord(strange[0]):04X}'


class Choice(StrEnum):
    """A setting with named values: `Kind('…')` raises InputError for an unknown name.

    Subclasses say what the setting is: `class Layout(Choice, what='layout')`.
    """

    _what: str

    def __init_subclass__(cls, what: str, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._what = what

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise InputError(f"{cls._what} '{value}' is unknown: expected one of {', '.join(cls)}")

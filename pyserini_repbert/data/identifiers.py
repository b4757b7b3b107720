"""The rules for qids and docids, and for texts that cannot be written as UTF-8: the same for every kind of file."""

from __future__ import annotations

import re

_VALUE = re.compile(r'[^ \t\n\r\x0b\x0c]+')
# NUL (a file in UTF-16), a byte order mark inside a file (several put together), and halves of surrogate pairs.
_STRANGE = re.compile('[\x00\ufeff\ud800-\udfff]')


def columns(line: str) -> list[str]:
    """The values of a line, split at ASCII white space as evaluators do (str.split also splits at Unicode's).

    Raises ValueError for a character that no identifier can have.
    """
    if found := _STRANGE.search(line):
        raise ValueError(_named(found))
    return _VALUE.findall(line)


def identifier_problem(name: str) -> str | None:
    """Why a run file cannot hold a qid or a docid; None if it can."""
    if not name:
        return 'is empty'
    if len(name.split()) != 1 or name != name.strip():
        return 'contains white space, which run files cannot hold'
    found = _STRANGE.search(name)
    return f'contains {_named(found)}, which no identifier can have' if found else None


def has_surrogates(text: str) -> bool:
    """Whether a text holds half of a surrogate pair: JSON's '\\ud800' alone, or a byte of an argument not in UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode('utf-8')
    except UnicodeEncodeError:
        return True
    return False


def _named(found: re.Match[str]) -> str:
    return f'the character U+{ord(found[0]):04X}'

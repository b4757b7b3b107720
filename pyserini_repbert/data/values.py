"""Values from text and JSON: numbers, identifiers, settings with named values.

Numbers have ASCII digits, as evaluators read them. Python's own int() and float() also take '1_0',
'٣' and ' 1 ', and numbers of any size. Unusable values raise ValueError; in a checkpoint
DamagedFileError.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar, cast

from pyserini_repbert.errors import DamagedFileError, InputError

MAX_COUNT = 2**31 - 1  # of hits, passages, threads: what a Java int holds
MAX_THREADS = 1024  # more are never faster, and millions would keep the system busy creating them
_INTEGER = re.compile(r'[+-]?[0-9]{1,20}')
_DECIMAL = re.compile(r'[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?')
_SHOWN = 40
_VALUE = re.compile(r'[^ \t\n\r\x0b\x0c]+')
# NUL (a file in UTF-16), a byte order mark inside a file (several put together), and halves of
# surrogate pairs.
_STRANGE = re.compile('[\x00\ufeff\ud800-\udfff]')
_SURROGATE = re.compile('[\ud800-\udfff]')
# What messages call it.
HALF_PAIR = 'half of a surrogate pair, which is not a character'


def integer(text: str, least: int = -MAX_COUNT, most: int = MAX_COUNT) -> int:
    """An integer from `least` to `most`. Raises ValueError saying what was expected."""
    if _INTEGER.fullmatch(text) and least <= int(text) <= most:
        return int(text)
    raise ValueError(f"'{text[:_SHOWN]}' is not an integer from {least} to {most}")


def decimal(text: str) -> float:
    """A finite number: '0.5', '-3', '1e-6'. Raises ValueError for anything else."""
    if _DECIMAL.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    raise ValueError(f"'{text[:_SHOWN]}' is not a finite number")


def share(text: str) -> float:
    """A number from 0 to 1. Raises ValueError for anything else."""
    value = decimal(text)
    if not 0 <= value <= 1:
        raise ValueError(f'{text} is not between 0 and 1')
    return value


def one_or_more(text: str) -> int:
    """An integer from 1 on. Raises ValueError for anything else."""
    return integer(text, 1)


def columns(line: str) -> list[str]:
    """The values of a line, split at ASCII white space as evaluators do.

    (`str.split` also splits at Unicode's.) Raises ValueError for a character that no identifier can
    have.
    """
    strange = _STRANGE.search(line)
    if strange:
        raise ValueError(_named(strange))
    return _VALUE.findall(line)


def identifier_problem(name: str) -> str | None:
    """Why a run file cannot hold a qid or a docid; None if it can."""
    if not name:
        return 'is empty'
    if name.split() != [name]:
        return 'contains white space, which run files cannot hold'
    strange = _STRANGE.search(name)
    if strange:
        return f'contains {_named(strange)}, which no identifier can have'
    return None


def has_surrogates(text: str) -> bool:
    """Whether text contains half of a surrogate pair.

    JSON's '\\ud800' alone gives one, and so does a byte of an argument that is not in UTF-8.
    """
    return not text.isascii() and bool(_SURROGATE.search(text))


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


_Kind = TypeVar('_Kind')


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{twice[:_SHOWN]}' occurs twice: remove one")
    return values


# One for all lines of a file: making it takes half as long as reading a line.
_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parse_json(text: str | bytes) -> Any:
    """A JSON value.

    Raises ValueError for text that is not JSON, has a key twice or is nested too deeply.
    """
    try:
        if isinstance(text, str) and not text.startswith('\ufeff'):
            return _DECODER.decode(text)
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError('nested too deeply') from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a checkpoint. Raises DamagedFileError for anything else."""
    try:
        values = parse_json(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise DamagedFileError(
            f'{path} is not JSON ({error}): fetch the checkpoint again'
        ) from error
    if not isinstance(values, dict):
        raise DamagedFileError(f'{path} is not a JSON object: fetch the checkpoint again')
    return values


def checked(kind: type[_Kind], value: object) -> _Kind:
    """`value` itself, checked against a TypedDict and the types within it.

    Further keys are allowed. Raises ValueError naming the first key that is missing or has another
    type.
    """
    from pydantic import ValidationError

    try:
        adapter(cast(Any, kind)).validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = '.'.join(map(str, first['loc']))
        raise ValueError(f'{key}: {first["msg"]}' if key else first['msg']) from error
    return cast(_Kind, value)


@cache
def adapter(kind: Any) -> Any:
    """Pydantic's adapter of a type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def first_key(record: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The first of `keys` that a record has; '' if it has none."""
    for key in keys:
        if key in record:
            return key
    return ''


def identifier_of(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The value of the first of `keys` that the record has, as text: a string, or an integer.

    Raises ValueError if it is missing or of another type: true would become 'True', and 1e3
    '1000.0'.
    """
    key = first_key(record, keys)
    value = record.get(key)
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise ValueError(f"no '{keys[0]}'")
    if isinstance(value, bool) or not isinstance(value, Integral):
        shown = json.dumps(value, default=str)[:_SHOWN]
        raise ValueError(f"'{key}' is {shown}, not a text or an integer: put it in quotes")
    return str(value)

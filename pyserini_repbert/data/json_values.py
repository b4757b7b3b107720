"""JSON from files that users bring: unusable values raise ValueError, in checkpoints DamagedFileError."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pyserini_repbert.errors import DamagedFileError

_SHOWN = 40
_Kind = TypeVar('_Kind')


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{twice[:_SHOWN]}' is there twice: remove one")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_object)  # made once: json.loads would make one a call


def parse_json(text: str | bytes) -> Any:
    """A JSON value. Raises ValueError for text that is not JSON, has a key twice or is nested too deeply."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode(json.detect_encoding(text)))
    except RecursionError as error:
        raise ValueError('nested too deeply') from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a checkpoint. Raises DamagedFileError for anything else."""
    try:
        values = parse_json(path.read_text(encoding='utf-8'))
    except ValueError as error:
        raise DamagedFileError(f'{path} is not JSON ({error}): fetch the checkpoint again') from error
    if not isinstance(values, dict):
        raise DamagedFileError(f'{path} is not a JSON object: fetch the checkpoint again')
    return values


def checked(kind: type[_Kind], value: object) -> _Kind:
    """`value` itself, checked against a TypedDict and the types within it; further keys are allowed.

    Raises ValueError naming the first key that is missing or has another type.
    """
    from pydantic import ValidationError

    try:
        adapter(cast(Any, kind)).validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = '.'.join(map(str, first['loc']))
        raise ValueError(f'{place}: {first["msg"]}' if place else first['msg']) from error
    return cast(_Kind, value)


@cache
def adapter(kind: Any) -> Any:
    """Pydantic's adapter of a type."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def identifier_of(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The value of the first of `keys` that the record has, as text: a string, or an integer.

    Raises ValueError where there is none, or for another type: true would become 'True', and 1e3 '1000.0'.
    """
    key = next((key for key in keys if key in record), None)
    value = None if key is None else record[key]
    if key is None or value is None or isinstance(value, (dict, list)):
        raise ValueError(f"no '{keys[0]}'")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"'{key}' is {json.dumps(value)[:_SHOWN]}, no text or whole number: put it in quotes")
    return str(value)

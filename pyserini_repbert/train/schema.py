"""A mapping from YAML into a dataclass: every key known, every value of its type, or one line that says which."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import Any

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError

_VARIABLE = re.compile(r'\$\{(\w+)\}')


def build(kind: type, content: object, where: str) -> Any:
    """An instance of the dataclass `kind`.

    Fields may be str, int, float, bool, a StrEnum, dict, another dataclass, a tuple of one of these, or optional.

    Raises
    ------
    InputError
        for a key that is unknown or missing, or a value of another type
    """
    if not isinstance(content, Mapping):
        raise InputError(f'{where}: a mapping was expected, found {content!r}')
    known = {own.name: own for own in fields(kind)}
    for key in content:
        if key not in known:
            near = did_you_mean(str(key), known)
            raise InputError(f"{where}: key '{key}' is unknown{near}: expected {', '.join(known)}")
    hints = typing.get_type_hints(kind)
    values = {}
    for name, own in known.items():
        if name in content:
            values[name] = _value(hints[name], content[name], f'{where}: {name}')
        elif own.default is MISSING and own.default_factory is MISSING:
            raise InputError(f"{where}: key '{name}' is missing")
    return kind(**values)


def _value(hint: Any, given: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if given is None:
            return None
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
        return _value(hint, given, where)
    if origin is tuple:
        if not isinstance(given, (list, tuple)):
            raise InputError(f'{where}: a list was expected, found {given!r}')
        return tuple(_value(typing.get_args(hint)[0], one, f'{where}.{i}') for i, one in enumerate(given))
    if is_dataclass(hint):
        return build(typing.cast(type, hint), given, where)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if given not in list(hint):
            raise InputError(f'{where}: {given!r} is unknown: expected one of {", ".join(hint)}')
        return hint(given)
    plain = origin or hint
    if plain is float and isinstance(given, (int, str)) and not isinstance(given, bool):
        with contextlib.suppress(ValueError):
            given = float(given)  # YAML reads 3e-6, without a point, as text
    if not isinstance(given, plain) or (plain is not bool and isinstance(given, bool)):
        raise InputError(f'{where}: {plain.__name__} was expected, found {given!r}')
    return given


def with_settings(content: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A copy in which each 'dotted.key=value' of `settings` has replaced the value at its key; values are YAML.

    Raises InputError for a setting of another form, or a key inside something that is no mapping and no list.
    """
    import yaml

    changed = copy.deepcopy(dict(content))
    for setting in settings:
        key, equals, text = setting.partition('=')
        if not equals or not key:
            raise InputError(f"setting '{setting}': 'key=value' was expected, as in training.steps=100")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"setting '{setting}': the value is not YAML") from error
        *path, last = key.split('.')
        inside: Any = changed
        try:
            for step in path:
                inside = inside[int(step)] if isinstance(inside, list) else inside.setdefault(step, {})
            inside[int(last) if isinstance(inside, list) else last] = value
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            raise InputError(f"setting '{setting}': there is no '{key}' in the recipe") from error
    return changed


def with_variables(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A copy without its `variables`, in which each `${NAME}` is replaced by one of them, or by the environment's."""
    rest = dict(content)
    own = rest.pop('variables', None) or {}
    if not isinstance(own, Mapping):
        raise InputError(f'{where}: variables: a mapping was expected, found {own!r}')

    def known(match: re.Match[str]) -> str:
        value = own.get(match[1])
        found = os.environ.get(match[1]) if value is None else str(value)
        if found is None:
            raise InputError(
                f'{where}: ${{{match[1]}}} has no value: pass --set variables.{match[1]}=VALUE, '
                'or set it in the environment'
            )
        return found

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            return _VARIABLE.sub(known, value)
        if isinstance(value, Mapping):
            return {key: replaced(inside) for key, inside in value.items()}
        return [replaced(inside) for inside in value] if isinstance(value, list) else value

    return typing.cast(dict[str, Any], replaced(rest))

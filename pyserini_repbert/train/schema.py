"""Turns a recipe's YAML into a `Recipe`. An unknown key, or a value of another type, is an error in one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.yaml_files import YamlFile, parse_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.train.recipe import Adapter, Recipe, Source, Teacher, Training, Validation

_VARIABLE = re.compile(r'\$\{(\w+)\}')
_UNPRINTABLE = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]')  # no path and no text has one
_PARTS = {'data': Source, 'validation': Validation, 'adapter': Adapter, 'teacher': Teacher, 'training': Training}
Keys = tuple[str | int, ...]


@cache
def _validator() -> Any:
    """pydantic's validator of recipes, cached since it takes 15 ms to make."""
    from pydantic import TypeAdapter

    return TypeAdapter(Recipe)


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as it was read, with the settings that replace its values.

    Parameters
    ----------
    file : the YAML file
    settings : 'key=value' with dotted keys, applied in order
    """

    file: YamlFile
    settings: tuple[str, ...] = ()

    def error(self, message: str, *keys: str | int) -> InputError:
        """An error about the entry at `keys`, which names the last setting that set it, else file and line."""
        dotted = [str(key) for key in keys]
        for setting in reversed(self.settings):
            own = setting.partition('=')[0].split('.')
            if own == dotted[: len(own)] or (dotted and dotted == own[: len(dotted)]):
                return InputError(f"setting '{setting}': {message}")
        return self.file.error(message, *keys)

    def content(self) -> dict[str, Any]:
        """The recipe's values, with settings applied, variables replaced, and each YAML alias a copy of its own.

        Raises InputError for content that is not a mapping, keys that are not text, variables without a value, control
        characters, and values of YAML's other types, such as dates.
        """
        if not isinstance(self.file.value, dict):
            raise self.file.error('no recipe: a mapping with name, system, base, data and training was expected')
        content = _with_settings(_unshared(self.file.value), self.settings)
        variables = content.pop('variables', None) or {}
        if not isinstance(variables, dict):
            raise self.error(f'variables: a mapping was expected, found {shortened(variables)}', 'variables')

        def plain(value: Any, keys: Keys) -> Any:
            if isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str) or _UNPRINTABLE.search(key):
                        message = f'{inside((*keys, 0))}the key {shortened(key)} is no text: put it in quotes'
                        raise self.error(message, *keys)
                return {key: plain(own, (*keys, key)) for key, own in value.items()}
            if isinstance(value, list):
                return [plain(own, (*keys, place)) for place, own in enumerate(value)]
            if isinstance(value, str):
                value = _VARIABLE.sub(lambda match: self._variable(match[1], variables, keys), value)
                if found := _UNPRINTABLE.search(value):
                    raise self.error(f'{dotted(keys)} has the character U+{ord(found[0]):04X}: remove it', *keys)
            elif value is not None and not isinstance(value, (int, float)):
                kind = type(value).__name__
                raise self.error(f'{dotted(keys)} is a {kind}: put it in quotes to make it a text', *keys)
            return value

        made: dict[str, Any] = plain(content, ())
        return made

    def _variable(self, name: str, variables: dict[str, Any], keys: Keys) -> str:
        value = variables.get(name)
        found = os.environ.get(name) if value is None else str(value)
        if found is None:
            message = f'${{{name}}} has no value: set variables.{name}, or {name} in the environment'
            raise self.error(message, *keys)
        return found

    def recipe(self, content: dict[str, Any], text: str) -> Recipe:
        """The recipe with these values and this `text`. Raises InputError for the first entry that is wrong."""
        from pydantic import ValidationError

        if 'text' in content:
            raise self._unknown(('text',))
        try:
            made: Recipe = _validator().validate_json(json.dumps({**content, 'text': text}))
        except ValidationError as error:
            raise self._refused(error.errors(include_url=False, include_context=False)[0]) from error
        return made

    def _refused(self, found: Any) -> InputError:
        """pydantic's error as an InputError."""
        keys, kind = found['loc'], found['type']
        if kind in ('unexpected_keyword_argument', 'extra_forbidden'):
            return self._unknown(keys)
        if kind.startswith('missing'):
            return self.error(f"{inside(keys)}key '{keys[-1]}' is missing", *keys[:-1])
        if kind == 'dataclass_type':
            return self.error(f'{inside((*keys, 0))}a mapping was expected, found {shortened(found["input"])}', *keys)
        expected = re.sub(r'^(Input|List|Tuple|String) should ', '', found['msg']).removeprefix('be ')
        return self.error(f'{dotted(keys)} is {shortened(found["input"])}, expected: {expected}', *keys)

    def _unknown(self, keys: Keys) -> InputError:
        part = _PARTS.get(str(keys[0]), Recipe) if len(keys) > 1 else Recipe
        known = [own.name for own in fields(part) if own.name != 'text']
        near = did_you_mean(str(keys[-1]), known)
        return self.error(f"{inside(keys)}key '{keys[-1]}' is unknown{near}: expected {', '.join(known)}", *keys)


def dotted(keys: Keys) -> str:
    """Keys as one text: 'training.steps'."""
    return '.'.join(map(str, keys))


def inside(keys: Keys) -> str:
    """The part that the last key is in, 'training: '; '' for a key of the recipe itself."""
    return f'{dotted(keys[:-1])}: ' if len(keys) > 1 else ''


def shortened(value: object) -> str:
    """A value as an error quotes it."""
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}…'


def _with_settings(content: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """`content`, in which each 'dotted.key=value' of `settings` has replaced the value at its key; values are YAML.

    Raises InputError for a setting of another form, or a key inside something that is no mapping and no list.
    """
    for setting in settings:
        key, equals, text = setting.partition('=')
        if not equals or not key:
            raise InputError(f"setting '{setting}': 'key=value' was expected, as in training.steps=100")
        value = parse_yaml(text, f"setting '{setting}'")
        *path, last = key.split('.')
        place: Any = content
        try:
            for step in path:
                if isinstance(place, dict) and place.get(step) is None:
                    place[step] = {}
                place = place[int(step) if isinstance(place, list) else step]
            place[int(last) if isinstance(place, list) else last] = value
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            raise InputError(f"setting '{setting}': there is no '{key}' in the recipe") from error
    return content


def _unshared(value: Any) -> Any:
    """A copy in which every alias is expanded."""
    if isinstance(value, dict):
        return {key: _unshared(own) for key, own in value.items()}
    return [_unshared(own) for own in value] if isinstance(value, list) else value

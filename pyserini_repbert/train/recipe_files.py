"""Reads recipes from YAML, and checks them before anything expensive begins.

An error is one line with its place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.yaml_files import YamlFile, parse_yaml, read_yaml
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import StrPath
from pyserini_repbert.tasks.recipe import Adapter, Recipe, Source, Teacher, Training, Validation
from pyserini_repbert.train.checking import RecipeFault, check_recipe

RECIPES = Path(__file__).parent.parent / 'resources' / 'recipes'
_VARIABLE = re.compile(r'\$\{(\w+)\}')
_PARTS = {
    'data': Source,
    'validation': Validation,
    'adapter': Adapter,
    'teacher': Teacher,
    'training': Training,
}
_VALIDATOR = TypeAdapter(Recipe)
# What pydantic's messages have around what was expected.
_AROUND = re.compile(r'^(Input|List|Tuple|String) should (be )?| after validation, not 0$')

Keys = tuple[str | int, ...]  # names and positions from the root


def recipe_path(name: str) -> Path:
    """The file of a recipe: a path, or the name of one that ships.

    Raises UnknownNameError with the nearest names.
    """
    if Path(name).is_file():
        return Path(name)
    known = sorted(path.stem for path in RECIPES.glob('*.yaml'))
    if name not in known:
        near = did_you_mean(name, known)
        raise UnknownNameError(
            f"'{name}' is neither a recipe file nor a recipe that ships{near}: {', '.join(known)}"
        )
    return RECIPES / f'{name}.yaml'


def read_recipe(path: StrPath, settings: tuple[str, ...] = ()) -> Recipe:
    """Read and check a recipe; `settings` ('training.steps=100', 'data.0.run=bm25.txt') replace the
    file's values.

    `${NAME}` stands for an entry of the recipe's `variables`, or of the environment.
    """
    source = RecipeFile(read_yaml(path, 'recipe'), settings)
    values = source.values()
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    recipe = source.validate(values, text)
    try:
        check_recipe(recipe)
    except RecipeFault as fault:
        raise source.error(fault.message, *fault.keys) from fault
    return recipe


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as it was read, with the settings ('key=value' with dotted keys) that replace its
    values.
    """

    file: YamlFile
    settings: tuple[str, ...] = ()

    def error(self, message: str, *keys: str | int) -> InputError:
        """An error about the entry at `keys`, which names the last setting that set it, else
        file and line.
        """
        entry = [str(key) for key in keys]
        for setting in reversed(self.settings):
            changed = setting.partition('=')[0].split('.')
            is_above = changed == entry[: len(changed)]
            is_below = bool(entry) and entry == changed[: len(entry)]
            if is_above or is_below:
                return InputError(f"setting '{setting}': {message}")
        return self.file.error(message, *keys)

    def values(self) -> dict[str, Any]:
        """The recipe's values, with settings (of YAML) applied and variables replaced; an alias
        of YAML is a copy.
        """
        if not isinstance(self.file.value, dict):
            raise self.file.error(
                'no recipe: a mapping with name, system, base, data and training was expected'
            )
        values = self.file.value
        for setting in self.settings:
            values = _apply_setting(values, setting)
        values = dict(values)
        variables = values.pop('variables', None) or {}
        if not isinstance(variables, dict):
            raise self.error(
                f'variables: a mapping was expected, found {variables!r:.60}', 'variables'
            )
        return dict(self._fill_in(values, variables))

    def _fill_in(self, value: Any, variables: Mapping[str, Any], keys: Keys = ()) -> Any:
        """A value as JSON has it, with variables replaced; what is neither text nor number (a
        date) becomes text.
        """
        if isinstance(value, dict):
            return {
                str(key): self._fill_in(below, variables, (*keys, str(key)))
                for key, below in value.items()
            }
        if isinstance(value, list):
            return [
                self._fill_in(below, variables, (*keys, position))
                for position, below in enumerate(value)
            ]
        if value is None or isinstance(value, int | float):
            return value
        return _VARIABLE.sub(lambda match: self._variable(match[1], variables, keys), str(value))

    def _variable(self, name: str, variables: Mapping[str, Any], keys: Keys) -> str:
        """The value of the variable that the entry at `keys` has."""
        value = variables.get(name)
        if value is not None:
            return str(value)
        if name not in os.environ:
            raise self.error(
                f'${{{name}}} has no value: set variables.{name}, or {name} in the environment',
                *keys,
            )
        return os.environ[name]

    def validate(self, values: dict[str, Any], text: str) -> Recipe:
        """The recipe with these values and this `text`.

        Raises InputError for the first entry that is wrong.
        """
        try:
            return _VALIDATOR.validate_json(json.dumps({**values, 'text': text}))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False)[0]
            raise self._error_of(wrong) from error

    def _error_of(self, wrong: Mapping[str, Any]) -> InputError:
        """The error for what pydantic finds wrong."""
        keys = wrong['loc']
        kind = wrong['type']
        entry = '.'.join(map(str, keys))
        given = f'{wrong["input"]!r:.60}'
        if kind in ('unexpected_keyword_argument', 'extra_forbidden'):
            part = _PARTS.get(str(keys[0]), Recipe)
            known = [field.name for field in fields(part) if field.name != 'text']
            near = did_you_mean(str(keys[-1]), known)
            return self.error(f'{entry} is unknown{near}: expected {", ".join(known)}', *keys)
        if kind.startswith('missing'):
            return self.error(f'{entry} is missing', *keys[:-1])
        if kind == 'dataclass_type':
            return self.error(f'{entry}: a mapping was expected, found {given}', *keys)
        expected = _AROUND.sub('', wrong['msg'])
        return self.error(f'{entry} is {given}, expected: {expected}', *keys)


def _apply_setting(values: Any, setting: str) -> Any:
    """A copy of a recipe's values, with one of them replaced.

    Raises InputError if the setting is no 'key=value', or if the recipe has no such key.
    """
    key, equals, text = setting.partition('=')
    if not equals or not key:
        raise InputError(f"setting '{setting}': 'key=value' was expected, as in training.steps=100")
    value = parse_yaml(text, f"setting '{setting}'").value
    try:
        return _replace(values, key.split('.'), value)
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(f"setting '{setting}': there is no '{key}' in the recipe") from error


def _replace(values: Any, keys: Sequence[str], value: Any) -> Any:
    """A copy of `values` with another value at `keys`; mappings that are missing are made."""
    if not keys:
        return value
    key, *below = keys
    if isinstance(values, list):
        position = range(len(values))[int(key)]
        changed = list(values)
        changed[position] = _replace(values[position], below, value)
        return changed
    mapping = values or {}
    return {**mapping, key: _replace(mapping.get(key), below, value)}

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
# Keys of a recipe that extends another one.
_EXTENDS = 'extends'
_CHANGES = 'changes'
_VARIABLE = re.compile(r'\$\{(\w+)\}')
_PARTS = {
    'data': Source,
    'validation': Validation,
    'adapter': Adapter,
    'teacher': Teacher,
    'training': Training,
}
_VALIDATOR = TypeAdapter(Recipe)
# The words around the expectation in pydantic's messages.
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

    A recipe that `extends` another one has that one's values, except for its `changes`. `${NAME}`
    means an entry of the recipe's `variables`, or of the environment.
    """
    source = _open_recipe(path, settings)
    values = source.values()
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    recipe = source.validate(values, text)
    try:
        check_recipe(recipe)
    except RecipeFault as fault:
        raise source.error(fault.message, *fault.keys) from fault
    return recipe


def _open_recipe(
    path: StrPath, settings: tuple[str, ...] = (), below: tuple[str, ...] = ()
) -> RecipeFile:
    """A recipe's file, and the one that it extends; `below` are the recipes that extend this
    one.
    """
    file = read_yaml(path, 'recipe')
    if not isinstance(file.value, dict):
        raise file.error(
            'no recipe: a mapping with name, system, base, data and training was expected'
        )
    if _EXTENDS not in file.value:
        return RecipeFile(file, settings)
    extended = file.value[_EXTENDS]
    changes = file.value.get(_CHANGES)
    others = [key for key in file.value if key not in (_EXTENDS, _CHANGES)]
    if not isinstance(extended, str) or not isinstance(changes, dict) or others:
        raise file.error(
            f'a recipe that extends another has {_EXTENDS}, its name, and {_CHANGES}, a mapping '
            "such as {'training.steps': 100}, and no other key",
            *others[:1],
        )
    if extended in below:
        raise file.error(f"{_EXTENDS}: '{extended}' extends this recipe", _EXTENDS)
    try:
        parent_path = recipe_path(extended)
    except UnknownNameError as error:
        raise file.error(f'{_EXTENDS}: {error}', _EXTENDS) from error
    parent = _open_recipe(parent_path, below=(*below, extended))
    return RecipeFile(file, settings, parent)


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as it was read.

    Attributes
    ----------
    file : has the values, or the `changes` of another recipe
    settings : 'key=value' with dotted keys, which replace values
    parent : the recipe that this one extends
    """

    file: YamlFile
    settings: tuple[str, ...] = ()
    parent: RecipeFile | None = None

    def error(self, message: str, *keys: str | int) -> InputError:
        """An error about the entry at `keys`, which names the last setting that set it, otherwise
        file and line.
        """
        entry = [str(key) for key in keys]
        for setting in reversed(self.settings):
            if _concerns(setting.partition('=')[0], entry):
                return InputError(f"setting '{setting}': {message}")
        if self.parent is None:
            return self.file.error(message, *keys)
        for changed in self.file.value[_CHANGES]:
            if _concerns(str(changed), entry):
                return self.file.error(message, _CHANGES, changed)
        return self.parent.error(message, *keys)

    def values(self) -> dict[str, Any]:
        """The recipe's values, with settings (of YAML) applied and variables replaced; an alias
        of YAML is a copy.
        """
        values = self._own_values()
        for setting in self.settings:
            values = _apply_setting(values, setting)
        values = dict(values)
        variables = values.pop('variables', None) or {}
        if not isinstance(variables, dict):
            raise self.error(
                f'variables: a mapping was expected, found {variables!r:.60}', 'variables'
            )
        return dict(self._fill_in(values, variables))

    def _own_values(self) -> Any:
        """The values of the file, or of the recipe that it extends, changed."""
        if self.parent is None:
            return self.file.value
        values = self.parent._own_values()
        for key, value in self.file.value[_CHANGES].items():
            try:
                values = _replace(values, str(key).split('.'), value)
            except (ValueError, IndexError, TypeError) as error:
                message = f"{_CHANGES}: there is no '{key}' in the recipe that this one extends"
                raise self.file.error(message, _CHANGES, key) from error
        return values

    def _fill_in(self, value: Any, variables: Mapping[str, Any], keys: Keys = ()) -> Any:
        """A value for JSON, with variables replaced.

        A value that is neither text nor a number, such as a date, becomes text.
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


def _concerns(changed: str, entry: Sequence[str]) -> bool:
    """Whether what a dotted key changes is the entry, holds it, or is in it."""
    keys = changed.split('.')
    is_above = keys == list(entry[: len(keys)])
    is_below = bool(entry) and list(entry) == keys[: len(entry)]
    return is_above or is_below


def _apply_setting(values: Any, setting: str) -> Any:
    """A copy of a recipe's values, with one of them replaced.

    Raises InputError if the setting is not 'key=value', or if the recipe has no such key.
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

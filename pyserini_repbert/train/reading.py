"""Reads recipes from YAML, and checks them before anything expensive begins.

An error is one line with its place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.yaml_files import YamlFile, parse_yaml, read_yaml
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import StrPath
from pyserini_repbert.tasks.recipe import (
    Adapter,
    Recipe,
    Source,
    System,
    Teacher,
    Training,
    Validation,
)

_GROUPED = (
    System.REPBERT,
    System.MONOBERT,
    System.EPIC,
    System.CEDR,
)  # duoBERT too: its groups are pairs
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
Keys = tuple[str | int, ...]


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
        dotted = [str(key) for key in keys]
        for setting in reversed(self.settings):
            changed = setting.partition('=')[0].split('.')
            if changed == dotted[: len(changed)] or (dotted and dotted == changed[: len(dotted)]):
                return InputError(f"setting '{setting}': {message}")
        return self.file.error(message, *keys)

    def content(self) -> dict[str, Any]:
        """The recipe's values, with settings (of YAML) applied and variables replaced; an alias
        of YAML is a copy.
        """
        if not isinstance(self.file.value, dict):
            raise self.file.error(
                'no recipe: a mapping with name, system, base, data and training was expected'
            )
        content = self.file.value
        for setting in self.settings:
            key, equals, text = setting.partition('=')
            if not equals or not key:
                raise InputError(
                    f"setting '{setting}': 'key=value' was expected, as in training.steps=100"
                )
            value = parse_yaml(text, f"setting '{setting}'").value
            try:
                content = _replaced(content, key.split('.'), value)
            except (ValueError, IndexError, TypeError) as error:
                raise InputError(
                    f"setting '{setting}': there is no '{key}' in the recipe"
                ) from error
        content = dict(content)
        variables = content.pop('variables', None) or {}
        if not isinstance(variables, dict):
            raise self.error(
                f'variables: a mapping was expected, found {variables!r:.60}', 'variables'
            )
        return dict(self._filled(content, variables))

    def _filled(self, value: Any, variables: dict[str, Any], keys: Keys = ()) -> Any:
        """A value as JSON has it, with variables replaced; what is neither text nor number (a
        date) becomes text.
        """
        if isinstance(value, dict):
            return {
                str(key): self._filled(below, variables, (*keys, str(key)))
                for key, below in value.items()
            }
        if isinstance(value, list):
            return [
                self._filled(below, variables, (*keys, place)) for place, below in enumerate(value)
            ]
        if value is None or isinstance(value, int | float):
            return value

        def variable(match: re.Match[str]) -> str:
            name = match[1]
            text = os.environ.get(name) if variables.get(name) is None else str(variables[name])
            if text is None:
                raise self.error(
                    f'${{{name}}} has no value: set variables.{name}, or {name} in the environment',
                    *keys,
                )
            return text

        return _VARIABLE.sub(variable, str(value))

    def recipe(self, content: dict[str, Any], text: str) -> Recipe:
        """The recipe with these values and this `text`.

        Raises InputError for the first entry that is wrong.
        """
        try:
            return _VALIDATOR.validate_json(json.dumps({**content, 'text': text}))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False)[0]
            keys = wrong['loc']
            kind = wrong['type']
            given = f'{wrong["input"]!r:.60}'
            entry = '.'.join(map(str, keys))
            if kind in ('unexpected_keyword_argument', 'extra_forbidden'):
                known = [
                    field.name
                    for field in fields(_PARTS.get(str(keys[0]), Recipe))
                    if field.name != 'text'
                ]
                near = did_you_mean(str(keys[-1]), known)
                raise self.error(
                    f'{entry} is unknown{near}: expected {", ".join(known)}', *keys
                ) from error
            if kind.startswith('missing'):
                raise self.error(f'{entry} is missing', *keys[:-1]) from error
            if kind == 'dataclass_type':
                raise self.error(
                    f'{entry}: a mapping was expected, found {given}', *keys
                ) from error
            expected = re.sub(
                r'^(Input|List|Tuple|String) should (be )?| after validation, not 0$',
                '',
                wrong['msg'],
            )
            raise self.error(f'{entry} is {given}, expected: {expected}', *keys) from error


def _replaced(content: Any, keys: Sequence[str], value: Any) -> Any:
    """A copy of `content` with another value at `keys`; mappings that are missing are made."""
    if not keys:
        return value
    if isinstance(content, list):
        place = range(len(content))[int(keys[0])]
        return [*content[:place], _replaced(content[place], keys[1:], value), *content[place + 1 :]]
    return {**(content or {}), keys[0]: _replaced((content or {}).get(keys[0]), keys[1:], value)}


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
    read = RecipeFile(read_yaml(path, 'recipe'), settings)
    content = read.content()
    recipe = read.recipe(content, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    if fault := _fault(recipe):
        message, keys = fault
        raise read.error(message, *keys)
    return recipe


def _fault(recipe: Recipe) -> tuple[str, Keys] | None:
    """Which parts of a recipe do not go together, and the keys of one of them; None if all do."""
    system = recipe.system
    training = recipe.training
    validation = recipe.validation
    if training.unit_layer and system is not System.REPBERT:
        return f"training.unit_layer is for RepBERT, not for '{system}': leave it out", (
            'training',
            'unit_layer',
        )
    if recipe.teacher is not None and not training.group:
        return 'teacher needs training.group, the candidates of a query that are scored together', (
            'teacher',
        )
    fits = (
        training.group == 2
        if system is System.DUOBERT
        else training.group != 1 and system in _GROUPED
    )
    if training.group and not fits:
        expected = f'0, or for {", ".join(_GROUPED)} 2 or more, for duobert 2'
        return f'training.group is {training.group}, for {system}: expected {expected}', (
            'training',
            'group',
        )
    if system is System.MLM and (validation or recipe.adapter):
        part = 'validation' if validation else 'adapter'
        return 'pre-training takes neither a validation nor an adapter: leave them out', (part,)
    if validation and validation.run is None and system is not System.REPBERT:
        return 'validation.run is missing: a reranker is validated on the hits of a run', (
            'validation',
        )
    for number, source in enumerate(recipe.data):
        if fault := _source_fault(recipe, source):
            return f'data.{number}: {fault}', ('data', number)
    return None


def _source_fault(recipe: Recipe, source: Source) -> str | None:
    """Why the recipe's system cannot be trained on a source, in words; None if it can."""
    if source.corpus and source.index:
        return 'give either corpus or index, not both'
    if recipe.system is System.MLM:
        return None if source.corpus is not None else 'pre-training needs a corpus'
    of_groups = bool(recipe.training.group)
    if source.triples is None and (
        source.topics is None or (source.qrels is None and not of_groups)
    ):
        return 'give topics and qrels, or triples'
    if source.topics is not None and source.corpus is None and source.index is None:
        return 'name the corpus or the index that holds the passages'
    if of_groups:
        if source.triples is not None or source.run is None or source.judged_only:
            return (
                "with training.group, candidates are a run's hits: give run, neither triples "
                'nor judged_only'
            )
        if recipe.teacher is not None and not (source.scores or recipe.teacher.checkpoint):
            return 'there is no teacher: give scores, or teacher.checkpoint'
        if recipe.teacher is None and (source.qrels is None or source.scores):
            return 'without a teacher, groups need qrels and take no scores'
        return None
    if source.scores is not None:
        return 'scores are of a teacher: give teacher and training.group too'
    if source.triples is not None:
        return None
    if not source.negatives and recipe.system is not System.REPBERT:
        return 'negatives is 0, expected 1 or more'
    if source.negatives and not source.judged_only and source.run is None:
        return 'negatives are drawn from a run: give run, judged_only, or for RepBERT negatives: 0'
    return None

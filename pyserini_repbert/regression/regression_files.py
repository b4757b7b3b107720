"""Reads and checks regression files. Every error names file and line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.data.yaml_files import KeyPath, YamlFile, read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.regression.cells import MAX_CELLS, Axes, GridCell, expand_grid
from pyserini_repbert.regression.placeholders import (
    BUILD_FOLDERS,
    FOLDERS,
    braced_name_problem,
    braced_names,
    file_name_problem,
    fill,
    path_problem,
)
from pyserini_repbert.regression.schema import (
    Build,
    Condition,
    ConditionEntry,
    Evaluator,
    Expected,
    Regression,
    RegressionFile,
    Resource,
    ResourceOrigin,
    ScoreEntry,
    ScoreSource,
    SharedFile,
    Tolerance,
    check_number,
)

_Declared = TypeVar('_Declared')
_Content = TypeVar('_Content', bound=SharedFile)

# A work folder has a folder of each regression's name, and one that all share.
_NAME = re.compile(r'\w[\w .+-]*')
_RESERVED = 'shared'
# pydantic's name of an error -> message for a value of another type
_EXPECTED = {
    'string_type': 'expected a text',
    'list_type': 'expected a list',
    'dict_type': 'expected a mapping',
    'literal_error': 'expected equal or different',
    'string_pattern_mismatch': 'expected hexadecimal digits, 32 of an MD5 and 64 of a SHA-256',
}


@dataclass(frozen=True)
class _File(Generic[_Content]):
    """A file that was read: the locations of its entries, and their content."""

    root: KeyPath
    content: _Content


@dataclass(frozen=True)
class _Declarations:
    """What conditions and builds may name; `names` are resources, builds and folders."""

    sources: Mapping[str, ScoreSource]
    evaluators: Mapping[str, Evaluator]
    tolerances: Mapping[str, Tolerance]
    names: set[str]


def read_regression(path: StrPath) -> Regression:
    """The regression file `path`, with what the file that it shares declares.

    Raises InputError, with file and line, for a file that is not as docs/formats/regressions.md
    says.
    """
    file = _read_file(path, RegressionFile)
    top = file.content
    _check_name(top.name, path, file.root)
    shared = _File(file.root, SharedFile())
    if top.shared:
        shared_path = PurePosixPath(top.shared)
        if shared_path.is_absolute() or '..' in shared_path.parts:
            raise file.root.error(
                f"'{top.shared}' is not a path here: expected one below this file's folder, "
                "without '..'",
                'shared',
            )
        shared = _read_file(Path(path).parent / shared_path, SharedFile)
    resources = _named_resources(shared.content, top)
    _check_targets(resources.values(), file.root)
    declared = _Declarations(
        sources=shared.content.sources | top.sources,
        evaluators=shared.content.evaluators | top.evaluators,
        tolerances=shared.content.tolerances | top.tolerances,
        names={*resources, *FOLDERS},
    )
    builds = _read_builds(shared, declared) + _read_builds(file, declared)
    conditions = _read_conditions(file, declared)
    return Regression(
        path=str(path),
        name=top.name,
        title=top.title,
        resources=resources,
        builds={build.name: build for build in builds},
        conditions=conditions,
    )


def _check_name(name: str, path: StrPath, root: KeyPath) -> None:
    """Raise InputError for a name that is not the file's, or that no folder can have."""
    if name != Path(path).name.removesuffix('.yaml'):
        raise root.error(
            f"'{name}' is not the name of the file: one and the same was expected", 'name'
        )
    if not _NAME.fullmatch(name) or name == _RESERVED:
        raise root.error(
            f"'{name}' cannot be the name of a folder of results: expected letters, digits, "
            f"'.', '+', '-' and '_', and not '{_RESERVED}'",
            'name',
        )


def _read_file(path: StrPath, kind: type[_Content]) -> _File[_Content]:
    file = read_yaml(path, 'regression file')
    try:
        content = kind.model_validate(_plain_value(file, file.node))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        keys = [key for key in first['loc'] if key != '[key]']
        if first['type'] == 'entry':
            keys.append(first['ctx']['key'])
        message = _EXPECTED.get(first['type'], first['msg'])
        raise file.error(message, *keys) from error
    return _File(KeyPath(file), content)


def _plain_value(file: YamlFile, node: Any) -> Any:
    """A node as dicts, lists, None, and texts as written, but on one line."""
    if node is None:
        return None
    if node.id == 'mapping':
        mapping = {}
        for key, value in node.value:
            if key.id != 'scalar':
                raise InputError.at(file.path, key.start_mark.line + 1, 'expected a text')
            mapping[key.value.replace('\n', ' ')] = _plain_value(file, value)
        return mapping
    if node.id == 'sequence':
        return [_plain_value(file, item) for item in node.value]
    if has_surrogates(node.value):
        raise InputError.at(file.path, node.start_mark.line + 1, 'expected a text')
    if node.tag.endswith(':null'):
        return None
    return node.value.replace('\n', ' ')


def _named_resources(shared: SharedFile, top: RegressionFile) -> dict[str, Resource]:
    """All resources, each with its name; the file's own replace shared ones."""
    return {
        name: resource.model_copy(update={'name': name})
        for name, resource in (shared.resources | top.resources).items()
    }


def _check_targets(resources: Iterable[Resource], root: KeyPath) -> None:
    """Raise InputError for two downloads that would be put at one path."""
    first_by_path: dict[str, Resource] = {}
    for resource in resources:
        if resource.origin is not ResourceOrigin.ADDRESS:
            continue
        path = resource.path.partition('/')[2]
        first = first_by_path.setdefault(path, resource)
        if (first.address, first.unpack) != (resource.address, resource.unpack):
            raise root.error(
                f"'{first.name}' and '{resource.name}' have one path, and other sources: give each "
                f'its own',
                'resources',
                resource.name,
            )


def _read_builds(file: _File[Any], declared: _Declarations) -> list[Build]:
    """The builds of a file, one for each cell of their grids; adds their names to `declared`."""
    builds: list[Build] = []
    for repeated_name, repeated in file.content.builds.items():
        keys = file.root.below('builds', repeated_name)
        for cell in expand_grid(repeated, keys, left=MAX_CELLS - len(builds)):
            entry = cell.entry
            name = fill(repeated_name, cell.axes)
            problem = file_name_problem(name)
            if problem:
                raise keys.error(problem)
            _check_build_path(entry.path, keys)
            needs = _read_needs(entry, [entry.path], declared.names | {name}, keys)
            needs = [need for need in needs if need != name]
            if name in declared.names:
                raise keys.error(f"'{name}' occurs twice: give it another name")
            builds.append(entry.model_copy(update={'name': name, 'needs': needs}))
            declared.names.add(name)
    return builds


def _read_conditions(file: _File[RegressionFile], declared: _Declarations) -> list[Condition]:
    """The conditions of a file, one for each cell of their grids."""
    conditions: dict[str, Condition] = {}
    for number, repeated in enumerate(file.content.conditions):
        keys = file.root.below('conditions', number)
        for cell in expand_grid(repeated, keys, left=MAX_CELLS - len(conditions)):
            name = cell.entry.name
            if name in conditions:
                raise keys.error(f"condition '{name}' occurs twice: give it another name")
            conditions[name] = _read_condition(cell, declared, keys)
    if not conditions:
        raise file.root.error('no conditions: expected at least one', 'conditions')
    return list(conditions.values())


def _check_build_path(path: str, keys: KeyPath) -> None:
    _check_names(path, FOLDERS, keys.below('path'))
    problem = path_problem(path, BUILD_FOLDERS)
    if problem:
        raise keys.error(problem, 'path')


def _check_names(text: str, known: Iterable[str], keys: KeyPath) -> None:
    """Raise InputError for a name in braces that is not known."""
    problem = braced_name_problem(text, known)
    if problem:
        raise keys.error(problem)


def _read_needs(
    entry: Build | ConditionEntry, texts: Iterable[str], known: Iterable[str], keys: KeyPath
) -> list[str]:
    """The names under `needs`, and in braces in texts and commands, without folders.

    Raises InputError for a command or a name that cannot be used.
    """
    for number, command in enumerate(entry.commands):
        _check_command(command, known, keys.below('commands', number))
    for number, name in enumerate(entry.needs):
        if name not in known:
            message = f"'{name}' is neither a resource nor a build{did_you_mean(name, known)}"
            raise keys.error(message, 'needs', number)
    names = list(entry.needs)
    for text in [*entry.commands, *texts]:
        names += braced_names(text)
    return [name for name in dict.fromkeys(names) if name not in FOLDERS]


def _check_command(command: str, known: Iterable[str], keys: KeyPath) -> None:
    _check_names(command, known, keys)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise keys.error(f'not a command ({error}): check its quotes') from error
    if words[:2] != ['python', '-m'] or len(words) < 3:
        raise keys.error("expected a command that begins with 'python -m MODULE'")


def _read_condition(
    cell: GridCell[ConditionEntry], declared: _Declarations, keys: KeyPath
) -> Condition:
    entry = cell.entry
    files = {'run': entry.run, 'qrels': entry.qrels, 'table': entry.table}
    for name, text in files.items():
        _check_names(text, declared.names, keys.below(name))
        if text.startswith('-') or '..' in text.split('/'):
            raise keys.error(f"'{text}' is not a file: give a name or a path without '..'", name)
    if bool(entry.run) != bool(entry.qrels) or (entry.run and entry.table):
        raise keys.error('expected run and qrels, or table')
    expected = _read_expected(cell, declared, keys.below('expected'))
    recorded = _read_recorded(cell, declared, keys.below('recorded'))
    if not expected and not recorded:
        raise keys.error('expected scores are missing here: give expected or recorded')
    if expected and not (entry.run or entry.table):
        raise keys.error(
            'run and qrels, or table, is missing here: where are the expected scores measured?'
        )
    return Condition(
        name=entry.name,
        commands=entry.commands,
        needs=_read_needs(entry, files.values(), declared.names, keys),
        run=entry.run,
        qrels=entry.qrels,
        table=entry.table,
        heavy=entry.heavy,
        expected=expected,
        recorded=recorded,
    )


def _read_expected(
    cell: GridCell[ConditionEntry], declared: _Declarations, keys: KeyPath
) -> list[Expected]:
    """The scores of a cell that are compared with measurements."""
    is_from_table = bool(cell.entry.table)
    scores = []
    for number, entry in enumerate(cell.entry.expected):
        here = keys.below(number)
        if is_from_table and not entry.where:
            raise here.error('where is missing here: which row of the table?')
        score = _read_score(entry, cell.axes, declared, here)
        if score is not None:
            tolerance = _find_declared(declared.tolerances, entry.tolerance, 'tolerance', here)
            where = entry.where if is_from_table else {}
            scores.append(replace(score, tolerance=tolerance, where=where))
    return scores


def _read_recorded(
    cell: GridCell[ConditionEntry], declared: _Declarations, keys: KeyPath
) -> list[Expected]:
    """The figures of a cell that are compared with nothing."""
    scores = []
    for number, entry in enumerate(cell.entry.recorded):
        here = keys.below(number)
        score = _read_score(entry, cell.axes, declared, here)
        if score is not None:
            if not entry.unit:
                raise here.error('unit is missing here')
            scores.append(replace(score, unit=entry.unit))
    return scores


def _read_score(
    entry: ScoreEntry, axes: Axes, declared: _Declarations, keys: KeyPath
) -> Expected | None:
    """A score with its source; None for one whose value is `null`."""
    text = _value_in_cell(entry, axes, keys)
    if text is None:
        return None
    source = _find_declared(declared.sources, entry.source, 'source', keys)
    parts = [part for part in (entry.row, entry.column, entry.cell) if part]
    if source.cells and not parts:
        raise keys.error('row, column or cell is missing here: which cell of the source is it?')
    evaluator = None
    if entry.measure in source.evaluators:
        name = source.evaluators[entry.measure]
        evaluator = _find_declared(declared.evaluators, name, 'evaluator', keys)
    return Expected(
        measure=entry.measure,
        text=text,
        source=source,
        evaluator=evaluator,
        cell='/'.join([source.cells, *parts]) if source.cells else '',
        row_and_column=', '.join(parts),
    )


def _value_in_cell(entry: ScoreEntry, axes: Axes, keys: KeyPath) -> str | None:
    """The `value` of a score, or its value in `values` for a cell.

    `values` are nested by the labels of the axes `by`, by default of all axes.
    """
    has_value = 'value' in entry.model_fields_set
    has_values = 'values' in entry.model_fields_set
    if has_value == has_values:
        raise keys.error('expected value, or values for a grid')
    if has_value:
        return _number_at(keys.below('value'), entry.value)
    here = keys.below('values')
    value: Any = entry.values
    for axis in entry.by or [name for name in axes if '.' not in name]:
        if axis not in axes:
            raise keys.error(
                f"'{axis}' is not an axis of the grid: there are {', '.join(axes)}", 'values'
            )
        label = axes[axis]
        if not isinstance(value, dict):
            raise here.error('expected a mapping')
        if label not in value:
            raise here.error(
                f"'{label}' is missing here: each label of the grid has a value, or null"
            )
        value = value[label]
        here = here.below(label)
    return _number_at(here, value)


def _number_at(keys: KeyPath, value: object) -> str | None:
    """A value that is None or the text of a number. Raises InputError for another."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise keys.error('expected a text')
    try:
        return check_number(value)
    except ValueError as error:
        raise keys.error(str(error)) from error


def _find_declared(
    known: Mapping[str, _Declared], name: str, what: str, keys: KeyPath
) -> _Declared:
    if name not in known:
        raise keys.error(
            f"{what} '{name}' is not declared in this file{did_you_mean(name, known)}", what
        )
    return known[name]

"""Reads and checks regression files, and expands their grids. Every error names file and line."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.data.yaml_files import KeyPath, YamlFile, read_yaml
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.regression.layout import (
    FOLDERS,
    Build,
    ConditionEntry,
    RegressionFile,
    ScoreEntry,
    SharedFile,
    checked_number,
    filled,
    places,
    unknown_place,
)
from pyserini_repbert.regression.schema import Condition, Expected, Regression

_Declared = TypeVar('_Declared')
_File = TypeVar('_File', bound=SharedFile)
_Repeated = TypeVar('_Repeated', Build, ConditionEntry)
Axes = Mapping[str, str]  # of a cell: 'axis' -> its label; 'axis.key' -> that label's text
# pydantic's name of an error -> message for a value of another type
_EXPECTED = {
    'string_type': 'expected a text',
    'list_type': 'expected a list',
    'dict_type': 'expected a mapping',
    'literal_error': 'expected equal or different',
    'string_pattern_mismatch': 'expected hexadecimal digits, 32 of an MD5 and 64 of a SHA-256',
}


def read_regression(path: StrPath) -> Regression:
    """The regression file `path`."""
    root, top = _read_layout(path, RegressionFile)
    if top.name != Path(path).name.removesuffix('.yaml'):
        raise root.error(
            f"'{top.name}' is not the name of the file: one and the same was expected", 'name'
        )
    folder = Path(path).parent
    shared_root, shared = (
        _read_layout(folder / top.shared, SharedFile) if top.shared else (root, SharedFile())
    )
    resources = shared.resources | top.resources  # the file's own replace shared ones
    resources = {
        name: resource.model_copy(update={'name': name}) for name, resource in resources.items()
    }
    sources = shared.sources | top.sources
    tolerances = shared.tolerances | top.tolerances
    declared = SharedFile.model_construct(sources=sources, tolerances=tolerances)
    builds: dict[str, Build] = {}
    known = {*resources, *FOLDERS}
    for place, part in ((shared_root, shared), (root, top)):
        for name, entry in part.builds.items():
            here = place.below('builds', name)
            for axes, cell in _cells(entry, here):
                build = _build(filled(name, axes), cell, known, here)
                if build.name in known:
                    raise here.error(f"'{build.name}' is there twice: give it another name")
                builds[build.name] = build
                known.add(build.name)
    conditions: dict[str, Condition] = {}
    for number, repeated in enumerate(top.conditions):
        here = root.below('conditions', number)
        for axes, condition in _cells(repeated, here):
            if condition.name in conditions:
                raise here.error(
                    f"condition '{condition.name}' is there twice: give it another name"
                )
            conditions[condition.name] = _condition(condition, axes, declared, known, here)
    if not conditions:
        raise root.error('no conditions: expected at least one', 'conditions')
    return Regression(str(path), top.name, top.title, resources, builds, list(conditions.values()))


def _read_layout(path: StrPath, kind: type[_File]) -> tuple[KeyPath, _File]:
    """A file's root and its content."""
    file = read_yaml(path, 'regression file')
    try:
        return KeyPath(file), kind.model_validate(_plain(file, file.node))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = [key for key in first['loc'] if key != '[key]']
        place += [first['ctx']['key']] if first['type'] == 'entry' else []
        raise file.error(_EXPECTED.get(first['type'], first['msg']), *place) from error


def _plain(file: YamlFile, node: Any) -> Any:
    """A node as dicts, lists, None, and texts as they are written, but on one line."""
    if node is None:
        return None
    if node.id == 'mapping':
        plain = {}
        for key, value in node.value:
            if key.id != 'scalar':
                raise InputError.at(file.path, key.start_mark.line + 1, 'expected a text')
            plain[key.value.replace('\n', ' ')] = _plain(file, value)
        return plain
    if node.id == 'sequence':
        return [_plain(file, item) for item in node.value]
    if has_surrogates(node.value):
        raise InputError.at(file.path, node.start_mark.line + 1, 'expected a text')
    return None if node.tag.endswith(':null') else node.value.replace('\n', ' ')


def _cells(entry: _Repeated, place: KeyPath) -> Iterator[tuple[Axes, _Repeated]]:
    """The axes and the entry of each cell of its grid.

    `only: equal` leaves the cells whose last two axes have the same label, `only: different` the
    others.
    """
    cells = list(itertools.product(*entry.grid.values()))
    if entry.only:
        cells = [
            labels for labels in cells if (len(set(labels[-2:])) == 1) == (entry.only == 'equal')
        ]
    if not cells:
        raise place.error(
            'the grid has no cells: an axis needs a label, and `only` one that fits', 'grid'
        )
    for labels in cells:
        axes: dict[str, str] = {}
        for (axis, known), label in zip(entry.grid.items(), labels, strict=True):
            axes |= {axis: label} | {f'{axis}.{key}': text for key, text in known[label].items()}
        yield axes, entry.at(axes)


def _check_places(text: str, known: Collection[str], place: KeyPath, *keys: str | int) -> None:
    if wrong := unknown_place(text, known):
        raise place.error(wrong, *keys)


def _needs(
    entry: Build | ConditionEntry, texts: Iterable[str], known: Collection[str], place: KeyPath
) -> list[str]:
    """The names under `needs`, and in braces in texts and commands, without folders; commands
    are checked.
    """
    for number, command in enumerate(entry.commands):
        here = place.below('commands', number)
        _check_places(command, known, here)
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise here.error(f'not a command ({error}): check its quotes') from error
        if words[:2] != ['python', '-m'] or len(words) < 3:
            raise here.error("expected a command that begins with 'python -m MODULE'")
    for number, name in enumerate(entry.needs):
        if name not in known:
            message = f"'{name}' is neither a resource nor a build{did_you_mean(name, known)}"
            raise place.error(message, 'needs', number)
    named = [*entry.needs, *(name for text in [*entry.commands, *texts] for name in places(text))]
    return [name for name in dict.fromkeys(named) if name not in FOLDERS]


def _build(name: str, entry: Build, others: set[str], place: KeyPath) -> Build:
    _check_places(entry.path, FOLDERS, place, 'path')
    needs = _needs(entry, [entry.path], others | {name}, place)
    return entry.model_copy(
        update={'name': name, 'needs': [need for need in needs if need != name]}
    )


def _condition(
    entry: ConditionEntry, axes: Axes, declared: SharedFile, known: Collection[str], place: KeyPath
) -> Condition:
    files = {'run': entry.run, 'qrels': entry.qrels, 'table': entry.table}
    for name, text in files.items():
        _check_places(text, known, place, name)
    if bool(entry.run) != bool(entry.qrels) or (entry.run and entry.table):
        raise place.error('expected run and qrels, or table')
    expected = _scores(
        entry.expected, axes, declared, bool(entry.table), False, place.below('expected')
    )
    recorded = _scores(entry.recorded, axes, declared, False, True, place.below('recorded'))
    if not expected and not recorded:
        raise place.error('expected scores are missing here: give expected or recorded')
    if expected and not (entry.run or entry.table):
        raise place.error(
            'run and qrels, or table, is missing here: where are the expected scores measured?'
        )
    needs = _needs(entry, files.values(), known, place)
    return Condition(
        entry.name,
        entry.commands,
        needs,
        entry.run,
        entry.qrels,
        entry.table,
        entry.heavy,
        expected,
        recorded,
    )


def _scores(
    entries: Sequence[ScoreEntry],
    axes: Axes,
    declared: SharedFile,
    from_table: bool,
    is_recorded: bool,
    place: KeyPath,
) -> list[Expected]:
    """The scores of entries, in a grid those of a cell; entries whose value is `null` have none."""
    scores = []
    for number, entry in enumerate(entries):
        here = place.below(number)
        if from_table and not entry.where:
            raise here.error('where is missing here: which row of the table?')
        if ('value' in entry.model_fields_set) == ('values' in entry.model_fields_set):
            raise here.error('expected value, or values for a grid')
        value, keys = (
            (entry.value, ['value'])
            if 'value' in entry.model_fields_set
            else _cell(entry, axes, here)
        )
        if value is None:
            continue
        try:
            checked_number(value)
        except ValueError as error:
            raise here.error(str(error), *keys) from error
        if is_recorded and not entry.unit:
            raise here.error('unit is missing here')
        source = _named(declared.sources, entry.source, 'source', here)
        tolerance = (
            None if is_recorded else _named(declared.tolerances, entry.tolerance, 'tolerance', here)
        )
        parts = [text for text in (entry.row, entry.column, entry.cell) if text]
        if source.cells and not parts:
            raise here.error('row, column or cell is missing here: which cell of the source is it?')
        cell = '/'.join([source.cells, *parts]) if source.cells else ''
        where = entry.where if from_table else {}
        unit = entry.unit if is_recorded else ''
        scores.append(
            Expected(entry.measure, value, source, tolerance, cell, ', '.join(parts), where, unit)
        )
    return scores


def _cell(entry: ScoreEntry, axes: Axes, place: KeyPath) -> tuple[Any, list[str]]:
    """The value of a cell in `values`, nested by the labels of the axes `by` (default: of all),
    and the keys to it.
    """
    value: Any = entry.values
    keys = ['values']
    for axis in entry.by or [name for name in axes if '.' not in name]:
        if axis not in axes:
            raise place.error(
                f"'{axis}' is no axis of the grid: there are {', '.join(axes)}", 'values'
            )
        if not isinstance(value, dict):
            raise place.error('expected a mapping', *keys)
        if axes[axis] not in value:
            raise place.error(
                f"'{axes[axis]}' is missing here: each label of the grid has a value, or null",
                *keys,
            )
        value = value[axes[axis]]
        keys.append(axes[axis])
    if not isinstance(value, str | None):
        raise place.error('expected a text', *keys)
    return value, keys


def _named(known: Mapping[str, _Declared], name: str, what: str, place: KeyPath) -> _Declared:
    if name not in known:
        raise place.error(
            f"{what} '{name}' is not declared in this file{did_you_mean(name, known)}", what
        )
    return known[name]

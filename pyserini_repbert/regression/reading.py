"""Reads and checks regression files, and expands their grids. Every error names file and line."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pyserini_repbert import catalog
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.yaml_files import Place
from pyserini_repbert.files import StrPath
from pyserini_repbert.regression.layout import (
    BuildEntry,
    ConditionEntry,
    RecordedEntry,
    RegressionFile,
    ResourceEntry,
    ScoreEntry,
    SharedFile,
    checked_number,
    read_layout,
)
from pyserini_repbert.regression.schema import (
    Build,
    Condition,
    Expected,
    Origin,
    Regression,
    Resource,
    Source,
    Tolerance,
    places,
    replaced,
)

FOLDERS = ('data', 'downloads', 'pyserini', 'here', 'out', 'shared')
_Declared = TypeVar('_Declared')
_Repeated = TypeVar('_Repeated', BuildEntry, ConditionEntry)
Axes = Mapping[str, str]  # 'axis' -> its label in a cell; 'axis.key' -> that label's text


class Names(NamedTuple):
    """The sources and tolerances that a file declares."""

    sources: dict[str, Source]
    tolerances: dict[str, Tolerance]


def read_regression(path: StrPath) -> Regression:
    """The regression file `path`.

    Raises
    ------
    InputError
        for the first fault, with file and line
    """
    root, top = read_layout(path, RegressionFile)
    if top.name != Path(path).name.removesuffix('.yaml'):
        raise root.error(f"'{top.name}' is not the name of the file: one and the same was expected", 'name')
    parts: list[tuple[Place, SharedFile]] = [(root, top)]
    if 'shared' in top.model_fields_set:  # resources, builds, sources and tolerances that several regressions name
        parts.insert(0, read_layout(Path(path).parent / top.shared, SharedFile))
    names = Names({}, {})
    resources: dict[str, Resource] = {}
    for place, part in parts:  # the file's own come last and replace shared ones
        for name, source in part.sources.items():
            if ('cells' in source.model_fields_set) == ('commit' in source.model_fields_set):
                wanted = 'expected cells, the path in the list of published figures, or a commit'
                raise place.error(wanted, 'sources', name)
            names.sources[name] = Source(**source.model_dump())
        for name, tolerance in part.tolerances.items():
            names.tolerances[name] = Tolerance(float(tolerance.value), tolerance.reason)
        for name, resource in part.resources.items():
            resources[name] = _resource(name, resource, place.below('resources', name))
    builds: dict[str, Build] = {}
    known = {*resources, *FOLDERS}
    for place, part in parts:
        for name, entry in part.builds.items():
            here = place.below('builds', name)
            for axes, cell in _cells(entry, here):
                build = _build(replaced(name, axes), cell, known, here)
                if build.name in known:
                    raise here.error(f"'{build.name}' is there twice: give it another name")
                builds[build.name] = build
                known.add(build.name)
    conditions: dict[str, Condition] = {}
    for number, repeated in enumerate(top.conditions):
        here = root.below('conditions', number)
        for axes, own in _cells(repeated, here):
            condition = _condition(own, axes, names, known, here)
            if condition.name in conditions:
                raise here.error(f"condition '{condition.name}' is there twice: give it another name")
            conditions[condition.name] = condition
    if not conditions:
        raise root.error('no conditions: expected at least one', 'conditions')
    return Regression(str(path), top.name, top.title, resources, builds, list(conditions.values()))


def _resource(name: str, entry: ResourceEntry, place: Place) -> Resource:
    given = [origin for origin in Origin if origin.value in entry.model_fields_set]
    if len(given) != 1:
        raise place.error(f'expected one of {", ".join(Origin)}: how is it come by?')
    origin = given[0]
    get = '\n'.join(entry.address) if origin is Origin.ADDRESS else str(getattr(entry, origin))
    if origin is Origin.CATALOG:
        if entry.path:
            raise place.error('path and catalog: expected one of them')
        kind, _, known = get.partition('/')
        if kind not in catalog.KINDS or catalog.find(kind, known) is None:
            raise place.error(f"'{get}' is not in the catalog: expected KIND/NAME", 'catalog')
    elif origin is Origin.ADDRESS and not entry.path:
        raise place.error('path is missing here: where is it expected?')
    _check_places(entry.path, FOLDERS, place, 'path')
    _check_places(entry.get, FOLDERS, place, 'get')
    checksums = [(kind, str(getattr(entry, kind))) for kind in ('sha256', 'md5') if getattr(entry, kind)]
    return Resource(
        name, entry.what, origin, get, entry.path, entry.file, entry.unpack, entry.size, entry.licence,
        checksum=checksums[0] if checksums else None,
    )  # fmt: skip


def _cells(entry: _Repeated, place: Place) -> Iterator[tuple[Axes, _Repeated]]:
    """The axes and the entry of each cell of its grid.

    `only: equal` leaves the cells whose last two axes have the same label, `only: different` the others.
    """
    cells = [
        labels
        for labels in itertools.product(*entry.grid.values())
        if not entry.only or (len(set(labels[-2:])) == 1) == (entry.only == 'equal')
    ]
    if not cells:
        raise place.error('the grid has no cells: an axis needs a label, and `only` one that fits', 'grid')
    for labels in cells:
        axes: dict[str, str] = {}
        for (axis, known), label in zip(entry.grid.items(), labels, strict=True):
            axes |= {axis: label} | {f'{axis}.{key}': text for key, text in known[label].items()}
        yield axes, entry.at(axes)


def _check_places(text: str, known: Collection[str], place: Place, *keys: str | int) -> None:
    for name in places(text):
        if name not in known:
            near = did_you_mean(name, known)
            raise place.error(f"'{{{name}}}' is neither a resource, a build nor an axis{near}", *keys)


def _needs(entry: BuildEntry | ConditionEntry, texts: Iterable[str], known: Collection[str], place: Place) -> list[str]:
    """The names under `needs`, and in braces in texts and commands, without folders; commands are checked."""
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
            near = did_you_mean(name, known)
            raise place.error(f"'{name}' is neither a resource nor a build{near}", 'needs', number)
    found = [*entry.needs, *(name for text in [*entry.commands, *texts] for name in places(text))]
    return [name for name in dict.fromkeys(found) if name not in FOLDERS]


def _build(name: str, entry: BuildEntry, others: set[str], place: Place) -> Build:
    _check_places(entry.path, FOLDERS, place, 'path')
    needs = _needs(entry, [entry.path], others | {name}, place)
    return Build(name, entry.path, entry.commands, [need for need in needs if need != name])


def _condition(entry: ConditionEntry, axes: Axes, names: Names, known: Collection[str], place: Place) -> Condition:
    files = {'run': entry.run, 'qrels': entry.qrels, 'table': entry.table}
    for name, text in files.items():
        _check_places(text, known, place, name)
    if bool(entry.run) != bool(entry.qrels) or (entry.run and entry.table):
        raise place.error('expected run and qrels, or table')
    expected = _scores(entry.expected, axes, names, bool(entry.table), place.below('expected'))
    recorded = _scores(entry.recorded, axes, names, False, place.below('recorded'))
    if not expected and not recorded:
        raise place.error('expected scores are missing here: give expected or recorded')
    if expected and not (entry.run or entry.table):
        raise place.error('run and qrels, or table, is missing here: where are the expected scores measured?')
    needs = _needs(entry, files.values(), known, place)
    return Condition(
        entry.name, entry.commands, needs, entry.run, entry.qrels, entry.table, entry.heavy, expected, recorded
    )


def _scores(entries: Sequence[ScoreEntry], axes: Axes, names: Names, from_table: bool, place: Place) -> list[Expected]:
    found = (_score(own, axes, names, from_table, place.below(number)) for number, own in enumerate(entries))
    return [score for score in found if score is not None]


def _score(entry: ScoreEntry, axes: Axes, names: Names, from_table: bool, place: Place) -> Expected | None:
    """The score of an entry, in a grid that of a cell; None where its value is `null`."""
    if from_table and not entry.where:
        raise place.error('where is missing here: which row of the table?')
    if ('value' in entry.model_fields_set) == ('values' in entry.model_fields_set):
        raise place.error('expected value, or values for a grid')
    value, keys = (entry.value, ['value']) if 'value' in entry.model_fields_set else _cell(entry, axes, place)
    if value is None:
        return None
    try:
        checked_number(value)
    except ValueError as error:
        raise place.error(str(error), *keys) from error
    is_recorded = isinstance(entry, RecordedEntry)
    source = _named(names.sources, entry.source, 'source', place)
    tolerance = None if is_recorded else _named(names.tolerances, entry.tolerance, 'tolerance', place)
    parts = [text for text in (entry.row, entry.column, entry.cell) if text]
    if source.cells and not parts:
        raise place.error('row, column or cell is missing here: which cell of the source is it?')
    cell = '/'.join([source.cells, *parts]) if source.cells else ''
    where, unit = entry.where if from_table else {}, entry.unit if is_recorded else ''
    return Expected(entry.measure, value, source, tolerance, cell, ', '.join(parts), where, unit)


def _cell(entry: ScoreEntry, axes: Axes, place: Place) -> tuple[Any, list[str]]:
    """The value of a cell in `values`, nested by the labels of the axes `by` (default: of all), and the keys to it."""
    value: Any = entry.values
    keys = ['values']
    for axis in entry.by or [name for name in axes if '.' not in name]:
        if axis not in axes:
            raise place.error(f"'{axis}' is no axis of the grid: there are {', '.join(axes)}", 'values')
        if not isinstance(value, dict):
            raise place.error('expected a mapping', *keys)
        if axes[axis] not in value:
            raise place.error(f"'{axes[axis]}' is missing here: each label of the grid has a value, or null", *keys)
        value = value[axes[axis]]
        keys.append(axes[axis])
    if not isinstance(value, str | None):
        raise place.error('expected a text', *keys)
    return value, keys


def _named(known: Mapping[str, _Declared], name: str, what: str, place: Place) -> _Declared:
    if name not in known:
        raise place.error(f"{what} '{name}' is not declared in this file{did_you_mean(name, known)}", what)
    return known[name]

"""The expected scores of a condition: values, or a cell of a grid of them, with source and tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.regression.located import Located
from pyserini_repbert.regression.schema import Expected, Source, Tolerance

Declared = TypeVar('Declared')


@dataclass(frozen=True, slots=True)
class Names:
    """The sources and tolerances that a file declares."""

    sources: Mapping[str, Source]
    tolerances: Mapping[str, Tolerance]

    @classmethod
    def read(cls, parts: Sequence[Mapping[str, Located]]) -> Names:
        """From the tops of a file and of the one that it shares; its own come last and count."""
        sources, tolerances = {}, {}
        for name, value in [item for top in parts for item in _declared(top, 'sources')]:
            fields = value.fields()
            if ('cells' in fields) == ('commit' in fields):
                raise value.error('expected cells, the path in the list of published figures, or a commit')
            sources[name] = Source(**{key: field.text() for key, field in fields.items()})
        for name, value in [item for top in parts for item in _declared(top, 'tolerances')]:
            fields = value.fields()
            tolerances[name] = Tolerance(fields['value'].number(), fields['reason'].text())
        return cls(sources, tolerances)


def _declared(top: Mapping[str, Located], name: str) -> list[tuple[str, Located]]:
    return list(top[name].fields().items()) if name in top else []


def read_scores(value: Located | None, names: Names, from_table: bool, recorded: bool) -> list[Expected]:
    """The list under `expected`, or under `recorded`; a `null` in a grid of values is no score.

    Parameters
    ----------
    from_table : each names the row of a table, with `where`
    recorded : each has a unit and a source, and is compared with nothing
    """
    found: list[Expected] = []
    for item in value.items() if value is not None else []:
        fields = item.fields()
        if from_table and 'where' not in fields:
            raise item.error('where is missing here: which row of the table?')
        if ('value' in fields) == ('values' in fields):
            raise item.error('expected value, or values for a grid')
        place = fields['value'] if 'value' in fields else _cell(fields['values'], fields.get('by'))
        if place.is_null:
            continue
        place.number()
        source = _named(fields['source'], names.sources, 'source')
        tolerance = None if recorded else _named(fields['tolerance'], names.tolerances, 'tolerance')
        parts = [fields[name].text() for name in ('row', 'column', 'cell') if name in fields]
        if source.cells and not parts:
            raise item.error('row, column or cell is missing here: which cell of the source is it?')
        found.append(
            Expected(
                fields['measure'].text(),
                place.text(),
                source,
                tolerance,
                '/'.join([source.cells, *parts]) if source.cells else '',
                ', '.join(parts),
                {name: own.text() for name, own in fields['where'].fields().items()} if from_table else {},
                fields['unit'].text() if recorded else '',
            )
        )
    return found


def _named(value: Located, known: Mapping[str, Declared], what: str) -> Declared:
    name = value.text()
    if name not in known:
        raise value.error(f"{what} '{name}' is not declared in this file{did_you_mean(name, known)}")
    return known[name]


def _cell(values: Located, by: Located | None) -> Located:
    """Where the labels of the axes `by`, of all by default, lead in nested mappings of values."""
    axes = [own.text() for own in by.items()] if by else [name for name in values.axes if '.' not in name]
    here = values
    for axis in axes:
        if axis not in values.axes:
            raise values.error(f"'{axis}' is no axis of the grid: there are {', '.join(values.axes)}")
        below, label = here.fields(), values.axes[axis]
        if label not in below:
            raise here.error(f"'{label}' is missing here: each label of the grid has a value, or null")
        here = below[label]
    return here

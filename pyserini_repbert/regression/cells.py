"""The cells of a grid: an entry of a regression file, once for each combination of its labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from pyserini_repbert.data.yaml_files import KeyPath
from pyserini_repbert.regression.schema import Build, ConditionEntry

_Repeated = TypeVar('_Repeated', Build, ConditionEntry)
# Of a cell: 'axis' -> its label; 'axis.key' -> that label's text.
Axes = Mapping[str, str]

# Of a file: conditions, and builds.
MAX_CELLS = 1000
# Characters of an entry times the cells of its grid.
_MAX_GRID_TEXT = 2_000_000
_MAX_LABEL = 500  # characters of a label, and of the text that it is replaced by


@dataclass(frozen=True)
class GridCell(Generic[_Repeated]):
    """An entry in one cell of its grid."""

    axes: Axes
    entry: _Repeated


def expand_grid(entry: _Repeated, keys: KeyPath, *, left: int) -> Iterator[GridCell[_Repeated]]:
    """The cells of an entry's grid; the file may have `left` more.

    `only: equal` leaves the cells whose last two axes have the same label, `only: different` the
    others.
    """
    _check_size(entry, keys, left)
    cells = list(itertools.product(*entry.grid.values()))
    if entry.only:
        is_wanted = entry.only == 'equal'
        cells = [labels for labels in cells if (len(set(labels[-2:])) == 1) == is_wanted]
    if not cells:
        raise keys.error(
            'the grid has no cells: an axis needs a label, and `only` one that fits', 'grid'
        )
    for labels in cells:
        axes: dict[str, str] = {}
        for (axis, texts_of), label in zip(entry.grid.items(), labels, strict=True):
            axes[axis] = label
            for key, text in texts_of[label].items():
                axes[f'{axis}.{key}'] = text
        try:
            cell = entry.in_cell(axes)
        except (PydanticCustomError, ValidationError) as error:
            raise keys.error(f'in the cell {", ".join(labels)}: {_first_line(error)}') from error
        yield GridCell(axes, cell)


def _check_size(entry: Build | ConditionEntry, keys: KeyPath, left: int) -> None:
    """Raise InputError for a grid that would make more than the limits of a file allow."""
    for axis, texts_of in entry.grid.items():
        for label, texts in texts_of.items():
            if max(map(len, [label, *texts.values()])) > _MAX_LABEL:
                raise keys.error(f'a label of more than {_MAX_LABEL} characters', 'grid', axis)
    n_cells = math.prod(len(texts_of) for texts_of in entry.grid.values())
    if n_cells > left:
        raise keys.error(
            f'the grid has {n_cells:,} cells: expected {MAX_CELLS:,} at most, in all grids of the '
            f'file together',
            'grid',
        )
    n_characters = n_cells * _count_characters(entry.model_dump(exclude={'grid'}))
    if n_characters > _MAX_GRID_TEXT:
        raise keys.error(
            f'the cells of the grid have {n_characters:,} characters: expected '
            f'{_MAX_GRID_TEXT:,} at most: split the grid',
            'grid',
        )


def _count_characters(value: Any) -> int:
    """Characters of a value's texts, and one for each value."""
    if isinstance(value, dict):
        return sum(len(key) + _count_characters(below) for key, below in value.items())
    if isinstance(value, list):
        return sum(map(_count_characters, value))
    return 1 + len(value) if isinstance(value, str) else 1


def _first_line(error: PydanticCustomError | ValidationError) -> str:
    """The error in pydantic's message."""
    if isinstance(error, ValidationError):
        return error.errors(include_url=False, include_input=False)[0]['msg']
    return error.message()

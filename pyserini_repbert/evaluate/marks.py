"""Marks of significant differences, for the cells of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from string import ascii_uppercase
from typing import NamedTuple, TypeVar

from pyserini_repbert.evaluate.comparisons import ComparisonSettings, RunComparison
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.evaluate.significance import LEVEL, Comparison, compare, holm

_Key = TypeVar('_Key', bound=Hashable)


class Mark(Enum):
    """How a value compares with its baseline's."""

    NONE = ''
    BETTER = 'better'
    WORSE = 'worse'


class ComparedCell(NamedTuple):
    """The content of a table's cell, and what it is compared with."""

    baseline: Evaluation
    evaluation: Evaluation


class RunMarks:
    """Which runs differ significantly from which others.

    Attributes
    ----------
    letters : of the baselines, by their names; of all runs where each two are compared; empty if
        there is one baseline
    better : by the name of a run and a measure, the runs with a letter than which it is better
    worse : the baselines than which it is worse; empty if it has a letter itself, since `better`
        of the baseline then has it

    Parameters
    ----------
    comparisons : of `compare_pairs`
    """

    def __init__(self, comparisons: Sequence[RunComparison]) -> None:
        self.letters = _letters_of(comparisons)
        self.better: dict[tuple[str, str], list[str]] = {}
        self.worse: dict[tuple[str, str], list[str]] = {}
        for one in comparisons:
            measure = one.comparison.measure
            if one.is_better:
                self.better.setdefault((one.run, measure), []).append(one.baseline)
            elif one.is_worse and one.run in self.letters:
                self.better.setdefault((one.baseline, measure), []).append(one.run)
            elif one.is_worse:
                self.worse.setdefault((one.run, measure), []).append(one.baseline)


def _letters_of(comparisons: Sequence[RunComparison]) -> dict[str, str]:
    """The letters of baselines, or of all runs where each two are compared."""
    baselines = dict.fromkeys(one.baseline for one in comparisons)
    if len(baselines) < 2:
        return {}
    names = baselines | dict.fromkeys(one.run for one in comparisons)
    pairs = {(one.baseline, one.run) for one in comparisons}
    is_of_all = 2 * len(pairs) == len(names) * (len(names) - 1)
    return assign_letters(list(names if is_of_all else baselines))


def assign_letters(names: Sequence[str]) -> dict[str, str]:
    """A letter for each name: a free letter of the name, otherwise another, otherwise a number."""
    letters: dict[str, str] = {}
    for name in names:
        candidates = [*filter(ascii_uppercase.__contains__, name.upper()), *ascii_uppercase]
        free = [letter for letter in candidates if letter not in letters.values()]
        letters[name] = free[0] if free else str(len(letters) + 1)
    return letters


def mark_cells(
    cells: Mapping[_Key, ComparedCell], settings: ComparisonSettings
) -> dict[tuple[_Key, str], Mark]:
    """How each cell compares with its baseline in each measure, with Holm's correction for all.

    A cell that is its own baseline has no mark, and is not a comparison.
    """
    keys: list[_Key] = []
    compared: list[Comparison] = []
    for key, cell in cells.items():
        if cell.baseline is cell.evaluation:
            continue
        for comparison in compare(
            cell.baseline, cell.evaluation, settings.test, settings.samples, settings.seed
        ):
            keys.append(key)
            compared.append(comparison)
    marks: dict[tuple[_Key, str], Mark] = {}
    corrected = holm([comparison.p for comparison in compared])
    for key, comparison, p in zip(keys, compared, corrected, strict=True):
        mark = Mark.NONE
        if p < LEVEL:
            mark = Mark.BETTER if comparison.difference > 0 else Mark.WORSE
        marks[key, comparison.measure] = mark
    return marks

"""The figures of a benchmark: printed, and written as JSON with `--figures FILE`, which `all.py`
reads.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One result of a benchmark.

    Attributes
    ----------
    name : what was measured, in a few words
    value : in `unit`
    unit : 'x' is a ratio: how many times faster than the peer that `name` ends with
    goal : the value that it should reach, None for none
    at_most : whether `goal` is an upper limit
    """

    name: str
    value: float
    unit: str = 'x'
    goal: float | None = None
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """'met' or 'missed'; '' without a goal."""
        if self.goal is None:
            return ''
        return (
            'met'
            if (self.value <= self.goal if self.at_most else self.value >= self.goal)
            else 'missed'
        )

    @property
    def told_goal(self) -> str:
        """The goal with its direction, '' if there is none."""
        return (
            ''
            if self.goal is None
            else f'{"at most" if self.at_most else "at least"} {number(self.goal, self.unit)}'
        )


def number(value: float, unit: str) -> str:
    """A value, rounded to three digits or to an integer, with its unit."""
    digits = f'{value:.0f}' if abs(value) >= 100 else f'{value:.3g}'
    return f'{digits}{unit}' if unit in ('x', '%', '') else f'{digits} {unit}'


def parser(
    description: str | None, needs: Sequence[str] = (), **sizes: int
) -> argparse.ArgumentParser:
    """A parser with `--figures`; exits where a module is missing.

    Parameters
    ----------
    needs : modules of the benchmark's peers
    sizes : options that take an integer, with their defaults
    """
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f'{Path(sys.argv[0]).name} needs {", ".join(missing)}: pip install {" ".join(missing)}'
        )
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument('--figures', type=Path, help='JSON file to write the figures to')
    for name, default in sizes.items():
        made.add_argument(f'--{name}', type=int, default=default)
    return made


def tell(options: argparse.Namespace, figures: Sequence[Figure]) -> None:
    """Print the figures with their goals, and write them where `--figures` says."""
    for figure in figures:
        goal = f' (goal {figure.told_goal}: {figure.verdict})' if figure.goal is not None else ''
        print(f'{figure.name}: {number(figure.value, figure.unit)}{goal}')
    if options.figures:
        options.figures.write_text(
            json.dumps([asdict(figure) for figure in figures], indent=1), encoding='utf-8'
        )

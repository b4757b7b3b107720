"""What is made of a regression file: conditions with the scores that are expected of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyserini_repbert.regression.layout import Build, Resource, ScoreSource, Tolerance


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected score, or a figure that is only recorded."""

    measure: str  # in ir_measures' form, or the name of a recorded figure
    text: str  # the value as published, with all its digits
    source: ScoreSource
    tolerance: Tolerance | None  # None for a recorded figure
    cell: str = ''  # its path in the list of published figures, '' for this project's own
    place: str = ''  # row and column of the source, for readers
    where: Mapping[str, str] = field(
        default_factory=dict
    )  # column -> value, of its row in the condition's table
    unit: str = ''  # of a recorded figure, '' for the others

    @property
    def value(self) -> float:
        """The expected score."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half a unit of the last published digit: a score at most that far off agrees with all
        digits.
        """
        mantissa, _, exponent = self.text.lower().partition('e')
        return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition('.')[2]))


@dataclass(frozen=True, slots=True)
class Condition:
    """Commands, and the scores expected of them, as in one row of a paper's table."""

    name: str
    commands: Sequence[str]
    needs: Sequence[
        str
    ]  # all resources and builds that it needs, those in braces in its commands included
    run: str  # the run file to evaluate, and the judgments; '' with a table
    qrels: str
    # a CSV or TSV file that the commands write, with scores in a column `value` or named after the
    # measure
    table: str
    # what it takes, if it is left out unless asked for ('40 minutes of CPU'); '' for the others
    heavy: str
    expected: Sequence[Expected]
    recorded: Sequence[Expected]  # figures for reference, compared with nothing


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression file."""

    path: str
    name: str
    title: str
    resources: Mapping[str, Resource]
    builds: Mapping[str, Build]
    conditions: Sequence[Condition]

"""A chart of gains and losses: a bar for each question, from the greatest gain to the greatest
loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# In units of the chart's own, which the page stretches.
WIDTH = 1000
HEIGHT = 160
# The share of its step that a bar fills, if bars are few enough for visible gaps.
_FILLED = 0.8
_MOST_WITH_GAPS = 250


@dataclass(frozen=True)
class Bar:
    """A question's gain, above the middle of the chart, or its loss, below.

    Attributes
    ----------
    x, y : of the upper left corner
    """

    x: float
    y: float
    width: float
    height: float
    qid: str
    difference: float


@dataclass(frozen=True)
class Chart:
    """The bars of the questions that differ; `greatest` is the longest one's difference, without
    its sign.
    """

    bars: tuple[Bar, ...]
    greatest: float


def make_chart(differences: Mapping[str, float]) -> Chart:
    """The chart of differences by qid; a question without a difference keeps its place empty."""
    greatest = max(map(abs, differences.values()), default=0.0)
    step = WIDTH / max(len(differences), 1)
    width = step
    if len(differences) <= _MOST_WITH_GAPS:
        width = _FILLED * step
    bars = []
    for position, qid in enumerate(sorted(differences, key=lambda qid: -differences[qid])):
        difference = differences[qid]
        if not difference:
            continue
        height = HEIGHT / 2 * abs(difference) / greatest
        y = HEIGHT / 2
        if difference > 0:
            y -= height
        bars.append(Bar(position * step, y, width, height, qid, difference))
    return Chart(tuple(bars), greatest)

"""The scores written to run files: decimals that strictly decrease."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pyserini_repbert.data.run_parser import Array

SCORE_DIGITS = 6
_PER_UNIT = 10.0**SCORE_DIGITS
_UNIT_IS_ENOUGH_BELOW = 16.0  # 32-bit floats below 16 are less than 10^-6 apart: a step of one digit is not lost


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Scores with `SCORE_DIGITS` decimals that strictly decrease, also as 32-bit floats, changed as little as needed.

    Evaluators sort a run by score again, and trec_eval reads scores as 32-bit floats: they would order ties their way.
    The order given is preserved; no score exceeds its rounded value. Scores have to be finite.
    """
    rounded = np.round(np.asarray(scores, dtype=np.float64), SCORE_DIGITS) + 0.0
    ties = _not_decreasing(rounded)
    if not len(ties):
        return rounded.tolist()  # type: ignore[no-any-return]
    if np.abs(rounded).max() + len(rounded) / _PER_UNIT < _UNIT_IS_ENOUGH_BELOW:
        steps = np.arange(len(rounded))
        units = np.minimum.accumulate(np.rint(rounded * _PER_UNIT) + steps) - steps
        return (units / _PER_UNIT + 0.0).tolist()  # type: ignore[no-any-return]
    result: list[float] = rounded.tolist()
    for tie in ties.tolist():
        for i in range(tie, len(result)):
            if np.float32(result[i]) < np.float32(result[i - 1]):
                break
            result[i] = _next_below(result[i - 1])
    return result


def ties_restored(scores: Sequence[float]) -> list[float]:
    """Undo `strictly_decreasing`: a score one written step below its predecessor becomes equal to it.

    Neither `scores` nor the result ever increase. Scores that really are one step apart become tied, too.
    """
    largest = max(map(abs, scores), default=0.0)
    small = largest + len(scores) / _PER_UNIT < _UNIT_IS_ENOUGH_BELOW
    result = list(scores)
    for i in range(1, len(result)):
        above = scores[i - 1]
        if above - scores[i] > 1e-5 + 1e-6 * abs(above):  # further apart than any step: quicker than computing the step
            continue
        if scores[i] >= (above - 1.5 / _PER_UNIT if small else _next_below(above)):
            result[i] = result[i - 1]
    return result


def _not_decreasing(values: Array) -> Array:
    """The positions, from 1, of the values that are not less than the one before them as 32-bit floats."""
    single = values.astype(np.float32)
    return np.flatnonzero(single[1:] >= single[:-1]) + 1


def _next_below(value: float) -> float:
    """The greatest multiple of 10^-6 that is less than `value` also as a 32-bit float."""
    single = np.float32(value)
    below = min(value - 1 / _PER_UNIT, float(np.nextafter(single, np.float32(-np.inf))))
    rounded = round(below, SCORE_DIGITS)
    return rounded if np.float32(rounded) < single else math.floor(below * _PER_UNIT) / _PER_UNIT

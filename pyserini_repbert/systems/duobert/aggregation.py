"""From p_ij, the probability that candidate i is more relevant than j, to a score of each
(Multi-Stage section 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError

Seed = int | Sequence[int]


class Aggregation(Choice, what='aggregation'):
    """The five methods of Multi-Stage eq. 3 to 7."""

    SUM = 'sum'
    BINARY = 'binary'
    MIN = 'min'
    MAX = 'max'
    SAMPLE = 'sample'


def checked_method(method: str, samples: int | None) -> Aggregation:
    """The method.

    Raises InputError for an unknown method, and for `samples` that is missing, below 1, or given
    with another method.
    """
    chosen = Aggregation(method)
    if (chosen is Aggregation.SAMPLE) != (samples is not None):
        raise InputError(
            f"samples={samples} with method '{method}': method 'sample' needs it, the others have "
            f'none'
        )
    if samples is not None and samples < 1:
        raise InputError(f'samples={samples}: expected at least 1')
    return chosen


def aggregate(
    p: ArrayLike, method: str = Aggregation.SUM, samples: int | None = None, seed: Seed = 0
) -> NDArray[np.float64]:
    """One score a candidate from the matrix of pairs (Multi-Stage eq. 3-7). J_i is all j but i.

    Parameters
    ----------
    p : (n, n), p[i, j] the probability that i is more relevant than j; the diagonal is ignored and
        may be NaN
    method : 'sum', 'binary' (how often p > 0.5), 'min', 'max' over J_i, or 'sample': the sum over
        `samples` of J_i
    samples : m of 'sample', drawn without replacement for each candidate; all of J_i if it has no
        more
    seed : of the sampling

    Returns float64 (n,), 0 for a candidate without a competitor. Raises InputError for a matrix of
    another shape, a needed value that is not a probability, and `samples` that do not fit the
    method.
    """
    chosen = checked_method(method, samples)
    matrix = np.asarray(p, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f'a pair matrix of shape {matrix.shape} was given, expected (n, n)')
    used = sampled_pairs(len(matrix), samples, seed)
    if len(strange := np.argwhere(used & ~((matrix >= 0) & (matrix <= 1)))):
        i, j = strange[0]
        raise InputError(
            f'p[{i}, {j}] is {matrix[i, j]}: expected a probability (NaN: the pair was not scored)'
        )
    return _reduced(matrix, used, chosen)


def aggregate_differences(
    differences: NDArray[np.floating[Any]],
    method: str = Aggregation.SUM,
    samples: int | None = None,
    seed: Seed = 0,
) -> NDArray[np.float64]:
    """`aggregate` from logit differences; 'min' and 'max' give unsaturated log p.

    Parameters
    ----------
    differences : (n, n), NaN where not scored
    method, samples, seed : as in `aggregate`
    """
    from pyserini_repbert.models.cross_encoder import log_probabilities

    chosen = Aggregation(method)
    logs = log_probabilities(np.asarray(differences, dtype=np.float64))
    scores = aggregate(np.exp(logs), chosen, samples, seed)
    if chosen not in (Aggregation.MIN, Aggregation.MAX):
        return scores
    return _reduced(logs, sampled_pairs(len(logs), samples), chosen)


def sampled_pairs(n: int, samples: int | None, seed: Seed = 0) -> NDArray[np.bool_]:
    """Which pairs are used, bool (n, n): all but the diagonal, or `samples` in each row, drawn
    with `seed`.
    """
    if samples is None or samples >= n - 1:
        return ~np.eye(n, dtype=bool)
    columns = np.random.default_rng(seed).random((n, n - 1)).argsort(axis=1)[:, :samples]
    columns += columns >= np.arange(n)[:, None]  # J_i leaves i out
    used = np.zeros((n, n), dtype=bool)
    np.put_along_axis(used, columns, True, axis=1)
    return used


def _reduced(
    matrix: NDArray[np.float64], used: NDArray[np.bool_], method: Aggregation
) -> NDArray[np.float64]:
    if len(matrix) < 2:
        return np.zeros(len(matrix))
    if method is Aggregation.MIN:
        return np.where(used, matrix, np.inf).min(axis=1)  # type: ignore[no-any-return]
    if method is Aggregation.MAX:
        return np.where(used, matrix, -np.inf).max(axis=1)  # type: ignore[no-any-return]
    values = matrix > 0.5 if method is Aggregation.BINARY else matrix
    return np.where(used, values, 0.0).sum(axis=1)  # type: ignore[no-any-return]

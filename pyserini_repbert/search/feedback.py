"""Pseudo-relevance feedback of dense search: a query's vector moves towards its best hits.

Li et al., Pseudo Relevance Feedback with Deep Language Models and Dense Retrievers, TOIS 2023. The
methods, their settings' names and their defaults are as in Pyserini's `--prf-method`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import Choice, integer
from pyserini_repbert.errors import InputError


class FeedbackMethod(Choice, what='feedback method'):
    """How vectors of hits change a query's vector."""

    AVERAGE = 'average'
    ROCCHIO = 'rocchio'


_SETTINGS = {
    FeedbackMethod.AVERAGE: ('depth',),
    FeedbackMethod.ROCCHIO: ('depth', 'alpha', 'beta', 'gamma', 'topk', 'bottomk'),
}


@dataclass(frozen=True)
class VectorFeedback:
    """Feedback by the first `depth` hits of a query.

    Attributes
    ----------
    method : 'average': the mean of the query's vector and the hits' vectors; 'rocchio': alpha times
        the query's, plus beta times the mean of the first `topk` hits', minus gamma times the mean
        of the last `bottomk` of them
    depth : hits that are read
    alpha, beta, gamma, topk, bottomk : of 'rocchio'; a `topk` of None is all hits that are read
    """

    method: FeedbackMethod = FeedbackMethod.ROCCHIO
    depth: int = 3
    alpha: float = 0.9
    beta: float = 0.1
    gamma: float = 0.1
    topk: int | None = None
    bottomk: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, 'method', FeedbackMethod(self.method))

    @classmethod
    def parse(cls, text: str) -> VectorFeedback:
        """The feedback given as text, such as 'average' or 'rocchio:depth=5,alpha=0.4,beta=0.6'.

        Raises InputError for anything else.
        """
        name, colon, rest = text.partition(':')
        method = FeedbackMethod(name)
        values: dict[str, float] = {}
        for part in rest.split(',') if colon else ():
            key, _, value = part.partition('=')
            if key not in _SETTINGS[method]:
                known = ', '.join(f'{setting}=…' for setting in _SETTINGS[method])
                raise InputError(f"feedback '{text[:80]}': expected {name}:{known}")
            values[key] = _number(text, key, value)
        depth = int(values.pop('depth', cls.depth))
        topk = None
        if 'topk' in values:
            topk = int(values.pop('topk'))
        bottomk = int(values.pop('bottomk', cls.bottomk))
        return cls(method, depth=depth, topk=topk, bottomk=bottomk, **values)

    def expand(self, query: NDArray[np.float32], hits: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vector that is searched for instead of a query's.

        Parameters
        ----------
        query : float32 (d,)
        hits : the vectors of its best hits, best first, float32 (n, d)
        """
        if not len(hits):
            return query
        if self.method is FeedbackMethod.AVERAGE:
            expanded = np.vstack([query, hits]).mean(axis=0)
        else:
            expanded = self.alpha * query + self.beta * hits[: self.topk].mean(axis=0)
            if self.bottomk:
                expanded = expanded - self.gamma * hits[-self.bottomk :].mean(axis=0)
        return np.asarray(expanded, np.float32)


def _number(text: str, key: str, value: str) -> float:
    try:
        if key in ('depth', 'topk'):
            return integer(value, 1)
        if key == 'bottomk':
            return integer(value, 0)
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float('inf'):
        raise InputError(f"feedback '{text[:80]}': {key} has to be a number from 0 on")
    return number

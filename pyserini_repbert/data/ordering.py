"""The order of documents by their scores: ties go by docid."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyserini_repbert.ranking import Ranking

Array = np.ndarray[Any, np.dtype[Any]]

_RECIPROCALS = tuple(1.0 / rank for rank in range(1, 1001))


def reciprocal_scores(n: int) -> tuple[float, ...]:
    """1, 1/2, …, 1/n: the scores of a ranking without scores.

    Rankings share these numbers in memory. They also serve to evaluate a ranking only by its order,
    because evaluators break ties in different ways.
    """
    return _RECIPROCALS[:n] + tuple(1.0 / rank for rank in range(len(_RECIPROCALS) + 1, n + 1))


def rank_by_score(docids: Array, scores: Array, k: int | None) -> Ranking:
    """The k best of documents, an object array, by (-score, docid); None: all."""
    # Ties come in any order: they are sorted by docid below.
    order = np.argsort(-scores)
    scores = scores[order]
    if k is not None and k < len(order):
        # Those that tie with the k-th may come before it.
        end = 0
        if k:
            end = int(np.searchsorted(-scores, -scores[k - 1], side='right'))
        order = order[:end]
        scores = scores[:end]
    ordered = docids[order]
    _order_ties(ordered, scores)
    return Ranking(ordered[:k].tolist(), scores[:k].tolist())


def _order_ties(docids: Array, scores: Array) -> None:
    """Sort, in place, the docids of each stretch of equal scores; `scores` is sorted."""
    # Whether each score equals the one before.
    equal = np.zeros(len(scores) + 1, dtype=bool)
    np.equal(scores[1:], scores[:-1], out=equal[1:-1])
    if not equal.any():
        return
    starts = np.flatnonzero(equal[1:] > equal[:-1])
    stops = np.flatnonzero(equal[1:] < equal[:-1]) + 1
    # Two ties are common: documents at one rank of different runs.
    of_two = stops - starts == 2
    firsts = starts[of_two]
    firsts = firsts[docids[firsts] > docids[firsts + 1]]
    greater = docids[firsts]
    docids[firsts] = docids[firsts + 1]
    docids[firsts + 1] = greater
    for start, stop in zip(starts[~of_two].tolist(), stops[~of_two].tolist(), strict=True):
        docids[start:stop] = sorted(docids[start:stop])

"""Fusion of whole runs, query by query: interleave, reciprocal rank fusion and interpolation.

The last two are a few lines on columns here, although Pyserini has them (`pyserini.fusion`): Pyserini's work on data
frames, which costs several times the time and memory, and give queries in sorted order. Scores and orders are the same,
which a test checks against Pyserini's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from math import fsum

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.interleaving import interleave
from pyserini_repbert.runs import RankedList, Run, reciprocal_scores

RRF_K = 60  # Cormack et al., SIGIR 2009
ALPHA = 0.5
_NO_HITS = RankedList([], [])


class FusionMethod(StrEnum):
    """How rankings become one."""

    INTERLEAVE = 'interleave'
    RRF = 'rrf'
    INTERPOLATION = 'interpolation'


def fuse(
    runs: Sequence[Run],
    method: str = FusionMethod.INTERLEAVE,
    k: int | None = 1000,
    alpha: float = ALPHA,
    rrf_k: float = RRF_K,
) -> Run:
    """Fuse runs query by query; a run without a query counts as an empty ranking for it.

    Queries come in the order of the first run, then those that only the second one has in its order, and so on.

    Parameters
    ----------
    runs : one or more, their order matters for `interleave` and `interpolation`
    method : a FusionMethod: `interleave` (RepBERT eq. 6; the scores are 1, 1/2, 1/3, …), `rrf` (sum of
        1 / (rrf_k + rank), rank from 1) or `interpolation` of two runs (alpha times the first run's score plus
        (1 - alpha) times the second's; a document that a run lacks has the score 0 there)
    k : how many documents to keep for each query; None keeps all
    alpha : weight of the first run in `interpolation`, 0 to 1
    rrf_k : the constant of reciprocal rank fusion, not to be taken for `k`

    Returns
    -------
    a new run; equal scores are ordered by docid

    Raises
    ------
    InputError
        for an unknown method, a negative `k` or `rrf_k`, an `alpha` outside 0 to 1, or a number of runs that the method
        does not take
    """
    combine = _combiner(method, alpha, rrf_k)
    if not runs or (method == FusionMethod.INTERPOLATION and len(runs) != 2):
        expected = 'exactly two' if method == FusionMethod.INTERPOLATION else 'at least one'
        raise InputError(f"fusion by '{method}' was given {len(runs)} runs, {expected} expected")
    if k is not None and k < 0:
        raise InputError(f'cannot keep {k} documents: k has to be at least 0, or None for all')
    qids = dict.fromkeys(qid for run in runs for qid in run)
    return {qid: combine([run.get(qid, _NO_HITS) for run in runs], k) for qid in qids}


def _combiner(method: str, alpha: float, rrf_k: float) -> Callable[[Sequence[RankedList], int | None], RankedList]:
    if method == FusionMethod.INTERLEAVE:
        return _interleaved
    if method == FusionMethod.RRF:
        if not rrf_k >= 0:
            raise InputError(f'rrf_k is {rrf_k}, at least 0 was expected (60 is usual)')
        return partial(_reciprocal_rank, rrf_k=rrf_k)
    if method == FusionMethod.INTERPOLATION:
        if not 0 <= alpha <= 1:
            raise InputError(f'alpha is {alpha}, a weight from 0 (second run only) to 1 (first run only) was expected')
        return partial(_interpolated, alpha=alpha)
    raise InputError(f"fusion method '{method}' is unknown: expected one of {', '.join(FusionMethod)}")


def _interleaved(rankings: Sequence[RankedList], k: int | None) -> RankedList:
    docids = interleave([ranking.docids for ranking in rankings], k)
    return RankedList(docids, reciprocal_scores(len(docids)))


def _reciprocal_rank(rankings: Sequence[RankedList], k: int | None, rrf_k: float) -> RankedList:
    longest = max(len(ranking.docids) for ranking in rankings)
    gains = [1.0 / (rrf_k + rank) for rank in range(1, longest + 1)]
    return _summed([(ranking.docids, gains) for ranking in rankings], k)


def _interpolated(rankings: Sequence[RankedList], k: int | None, alpha: float) -> RankedList:
    weighted = [
        (ranking.docids, [weight * score for score in ranking.scores])
        for ranking, weight in zip(rankings, (alpha, 1 - alpha), strict=True)
    ]
    return _summed(weighted, k)


def _summed(columns: Sequence[tuple[list[str], Iterable[float]]], k: int | None) -> RankedList:
    """Documents by (-sum of their scores, docid); rounded once, whatever the order of the runs."""
    if len(columns) <= 2:
        total: dict[str, float] = {}
        for docids, scores in columns:
            before = total
            total = dict(zip(docids, scores, strict=False))
            total = {docid: score + before.pop(docid, 0.0) for docid, score in total.items()} if before else total
            total.update(before)
    else:
        terms: dict[str, list[float]] = {}
        for docids, scores in columns:
            for docid, score in zip(docids, scores, strict=False):
                terms.setdefault(docid, []).append(score)
        total = {docid: fsum(own) for docid, own in terms.items()}
    order = sorted(total)
    order.sort(key=total.__getitem__, reverse=True)  # stable, also in reverse: equal scores stay ordered by docid
    order = order[:k]
    return RankedList(order, [total[docid] for docid in order])

"""Fusion of whole runs, query by query: interleave, reciprocal rank fusion and interpolation.

The last two are our own, although Pyserini has them (`pyserini.fusion`): its data frames cost several times the time
and memory, and sort the queries. Scores and orders are the same: a test compares them with Pyserini's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress, repeat
from math import fsum
from typing import Any

import numpy as np

from pyserini_repbert.choices import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.formats.runs import reciprocal_scores
from pyserini_repbert.fusion.interleaving import interleave
from pyserini_repbert.ranking import NO_HITS, Ranking, Run

RRF_K = 60.0  # Cormack et al., SIGIR 2009
ALPHA = 0.5
Array = np.ndarray[Any, np.dtype[Any]]


class FusionMethod(Choice, what='fusion method'):
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
    return fuse_by(combiner(len(runs), method, k, alpha, rrf_k), runs)


def fuse_by(combine: Callable[[Sequence[Ranking]], Ranking], runs: Sequence[Run]) -> Run:
    """What `fuse` does, with a function from `combiner`."""
    qids = dict.fromkeys(qid for run in runs for qid in run)
    return {qid: combine([run.get(qid, NO_HITS) for run in runs]) for qid in qids}


def combiner(
    n_runs: int,
    method: str = FusionMethod.INTERLEAVE,
    k: int | None = 1000,
    alpha: float = ALPHA,
    rrf_k: float = RRF_K,
) -> Callable[[Sequence[Ranking]], Ranking]:
    """The function that `fuse` applies to the rankings of one query, one from each of `n_runs` runs."""
    chosen = FusionMethod(method)
    if not n_runs or (chosen is FusionMethod.INTERPOLATION and n_runs != 2):
        expected = 'exactly two' if chosen is FusionMethod.INTERPOLATION else 'at least one'
        raise InputError(f"fusion by '{method}' was given {n_runs} runs, {expected} expected")
    if k is not None and k < 0:
        raise InputError(f'cannot keep {k} documents: k has to be at least 0, or None for all')
    if chosen is FusionMethod.INTERLEAVE:
        return partial(_interleaved, k=k)
    if chosen is FusionMethod.RRF:
        if not rrf_k >= 0:
            raise InputError(f'rrf_k is {rrf_k}, at least 0 was expected (60 is usual)')
        return partial(_reciprocal_rank, k=k, rrf_k=rrf_k)
    if not 0 <= alpha <= 1:
        raise InputError(f'alpha is {alpha}, a weight from 0 (second run only) to 1 (first run only) was expected')
    return partial(_interpolated, k=k, alpha=alpha)


def _interleaved(rankings: Sequence[Ranking], k: int | None) -> Ranking:
    docids = interleave([ranking.docids for ranking in rankings], k)
    return Ranking(docids, reciprocal_scores(len(docids)))


def _reciprocal_rank(rankings: Sequence[Ranking], k: int | None, rrf_k: float) -> Ranking:
    gains = 1.0 / (rrf_k + np.arange(1, max(len(ranking.docids) for ranking in rankings) + 1))
    return _summed([(ranking.docids, gains[: len(ranking.docids)]) for ranking in rankings], k)


def _interpolated(rankings: Sequence[Ranking], k: int | None, alpha: float) -> Ranking:
    first, second = rankings
    weighted = [alpha * np.array(first.scores), (1 - alpha) * np.array(second.scores)]
    return _summed([(first.docids, weighted[0]), (second.docids, weighted[1])], k)


def _summed(columns: Sequence[tuple[Sequence[str], Array]], k: int | None) -> Ranking:
    """Documents by (-sum of their scores, docid); each sum is rounded once, whatever the order of the runs."""
    docids, totals = _added(*columns) if len(columns) == 2 else _added_exactly(columns)
    order = np.argsort(-totals, kind='stable')
    totals = totals[order]
    ranked = list(map(docids.__getitem__, order.tolist()))
    last = len(ranked) if k is None else k
    for start, stop in _ties(totals):
        if start >= last:
            break
        if stop - start > 2:
            ranked[start:stop] = sorted(ranked[start:stop])
        elif ranked[start] > ranked[start + 1]:  # pairs are common: documents at the same rank of different runs
            ranked[start], ranked[start + 1] = ranked[start + 1], ranked[start]
    return Ranking(ranked[:k], totals[:k].tolist())


def _added(first: tuple[Sequence[str], Array], second: tuple[Sequence[str], Array]) -> tuple[Sequence[str], Array]:
    """The union of two rankings and the sums of their scores."""
    places = dict(zip(first[0], range(len(first[0])), strict=True))
    place = np.fromiter(map(places.get, second[0], repeat(-1)), dtype=np.int64, count=len(second[0]))
    new = place < 0
    totals = np.concatenate((first[1], second[1][new]))
    totals[place[~new]] += second[1][~new]
    return [*first[0], *compress(second[0], new.tolist())], totals


def _added_exactly(columns: Sequence[tuple[Sequence[str], Array]]) -> tuple[Sequence[str], Array]:
    terms: dict[str, list[float]] = {}
    for docids, scores in columns:
        for docid, score in zip(docids, scores.tolist(), strict=True):
            terms.setdefault(docid, []).append(score)
    return list(terms), np.array([fsum(own) for own in terms.values()], dtype=np.float64)


def _ties(totals: Array) -> Iterator[tuple[int, int]]:
    """[start, stop) of each stretch of equal values in a sorted column."""
    equal = totals[1:] == totals[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    return zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True)

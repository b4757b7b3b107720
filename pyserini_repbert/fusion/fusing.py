"""Fusion of whole runs, query by query: interleave, reciprocal rank fusion and interpolation.

The last two are implemented here although Pyserini has them (`pyserini.fusion`): its data frames
take several times the time and memory, and sort the queries. Scores and orders are the same as
Pyserini's, as a test checks.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from math import fsum

import numpy as np

from pyserini_repbert.data.ordering import Array, rank_by_score, reciprocal_scores
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.interleaving import interleave
from pyserini_repbert.fusion.methods import RRF_K, FusionMethod, Normalization
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import (
    NO_HITS,
    UNKNOWN_BACKGROUND,
    Background,
    Candidate,
    Ranking,
    Run,
    by_score,
)


def fuse(
    runs: Sequence[Run],
    method: str = FusionMethod.INTERLEAVE,
    k: int | None = 1000,
    alpha: float | Sequence[float] | None = None,
    rrf_k: float = RRF_K,
    normalize: str = Normalization.MINMAX,
) -> Run:
    """Fuse runs query by query; a run without a query counts as an empty ranking for it.

    Queries come in the order of the first run, then those that only the second one has in its
    order, and so on. Equal scores are ordered by docid.

    Parameters
    ----------
    runs : one or more, {qid: Ranking} or {qid: candidates, best first} (from `batch_search`); their
        order matters for `interleave` and `interpolation`
    method, rrf_k, normalize : of `FusionSettings`; `rrf_k` is not to be confused with `k`
    k : how many documents to keep for each query; None keeps all
    alpha : in `interpolation` of two runs the weight of the first, 0 to 1: the second has 1 -
        alpha; or a weight for each of any number of runs, 0 or more; None: 0.5, for two runs only

    Raises InputError for no runs, a negative k, an unknown method, and weights that do not fit.
    """
    settings = FusionSettings(method, rrf_k=rrf_k, normalize=normalize)
    return fuse_runs(runs, settings.changed(alpha), k)


def fuse_runs(runs: Sequence[Run], settings: FusionSettings, k: int | None = 1000) -> Run:
    """`fuse` by settings that are one value; their `depth` is for who makes the runs."""
    combine = combiner(len(runs), settings, k)
    rankings = [_as_rankings(run) for run in runs]
    qids: dict[str, None] = {}
    for run in runs:
        qids |= dict.fromkeys(run)
    fused: Run = {}
    collects = gc.isenabled()
    # To look for cycles in new rankings takes a seventh of the time (benchmarks/RESULTS.md).
    gc.disable()
    try:
        for qid in qids:
            fused[qid] = combine([run.get(qid, NO_HITS) for run in rankings])
    finally:
        if collects:
            gc.enable()
    return fused


def _as_rankings(run: Mapping[str, Iterable[Candidate]]) -> Run:
    """A run whose hits may be candidates or a searcher's own hits, without duplicates."""
    rankings: Run = {}
    for qid, hits in run.items():
        if not isinstance(hits, Ranking):
            hits = Ranking.of(hits).distinct()
        rankings[qid] = hits
    return rankings


def pyserini_hybrid(
    runs: Sequence[Run],
    k: int | None,
    alpha: float = 0.1,
    normalization: bool = False,
    on_dense: bool = False,
) -> Run:
    """Fusion by the formula of Pyserini's HybridSearcher.

    The score is the dense score plus `alpha` times the sparse one. A document that a ranking lacks
    has the ranking's lowest score there.

    Parameters
    ----------
    runs : the dense one and the sparse one
    k : how many documents to keep for each query; None keeps all
    alpha : the weight
    normalization : scale a ranking's scores to [-0.5, 0.5]; 0 if they are all alike
    on_dense : weight the dense score by alpha instead of the sparse one
    """
    dense_weight = alpha if on_dense else 1.0
    sparse_weight = 1.0 if on_dense else alpha
    dense_run = runs[0]
    sparse_run = runs[1]
    fused: Run = {}
    for qid, dense in dense_run.items():
        sparse = sparse_run[qid]
        totals = dict.fromkeys(dense.docids + sparse.docids, 0.0)
        _add_scores(totals, dense, dense_weight, normalization)
        _add_scores(totals, sparse, sparse_weight, normalization)
        fused[qid] = by_score(list(totals), list(totals.values()))[:k]
    return fused


def _add_scores(
    totals: dict[str, float], ranking: Ranking, weight: float, normalization: bool
) -> None:
    """Add a ranking's weighted scores as `pyserini_hybrid` says; all docids are in `totals`."""
    values: Sequence[float] = ranking.scores
    if normalization and values:
        values = _below_one(np.asarray(values)).tolist()
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    middle = 0.0
    width = 1.0
    if normalization:
        middle = (low + high) / 2
        width = (high - low) or 1.0
    scores = dict(zip(ranking.docids, values, strict=True))
    for docid in totals:
        totals[docid] += weight * ((scores.get(docid, low) - middle) / width)


def combiner(
    n_runs: int, settings: FusionSettings, k: int | None = None
) -> Callable[[Sequence[Ranking]], Ranking]:
    """The function that `fuse` applies to the rankings of one query.

    It takes a ranking from each of `n_runs` runs, and keeps k documents; None keeps all. Raises
    InputError for weights that are not of as many runs.
    """
    if not n_runs:
        raise InputError(f"fusion by '{settings.method}' was given 0 runs, at least one expected")
    if k is not None and k < 0:
        raise InputError(f'cannot keep {k} documents: k has to be at least 0, or None for all')
    if settings.method is FusionMethod.INTERLEAVE:
        return partial(_interleaved, k=k)
    if settings.method is FusionMethod.RRF:
        return partial(_reciprocal_rank, k=k, rrf_k=settings.rrf_k)
    scale = Normalization(settings.normalize)
    return partial(_weighted, k=k, weights=settings.weights_for(n_runs), scale=scale)


def _interleaved(rankings: Sequence[Ranking], k: int | None) -> Ranking:
    lists = [ranking.docids for ranking in rankings]
    docids = interleave(lists, k)
    return Ranking(docids, reciprocal_scores(len(docids)))


def _reciprocal_rank(rankings: Sequence[Ranking], k: int | None, rrf_k: float) -> Ranking:
    deepest = max(map(len, rankings))
    gains = 1.0 / (rrf_k + np.arange(1, deepest + 1))
    columns = [gains[: len(ranking)] for ranking in rankings]
    return _summed(rankings, columns, k)


def _weighted(
    rankings: Sequence[Ranking], k: int | None, weights: Sequence[float], scale: Normalization
) -> Ranking:
    try:
        with np.errstate(over='raise'):
            columns = []
            for ranking, weight in zip(rankings, weights, strict=True):
                columns.append(weight * scaled(ranking.scores, scale, ranking.background))
            return _summed(rankings, columns, k)
    except (FloatingPointError, OverflowError) as error:
        raise InputError(
            'fused scores are beyond the greatest number: give smaller weights, or normalise',
            parameters=('weights', 'normalize'),
        ) from error


def scaled(
    scores: Sequence[float] | Array,
    scale: Normalization,
    background: Background = UNKNOWN_BACKGROUND,
) -> Array:
    """A ranking's scores, normalised: float64 (n,); `background` is the ranking's."""
    chosen = Normalization(scale)
    if isinstance(scores, np.ndarray):
        values = scores.astype(np.float64)
    else:
        values = np.fromiter(scores, np.float64, len(scores))
    if chosen is Normalization.NONE or not len(values):
        return values
    if chosen is Normalization.BACKGROUND:
        if not background.is_known:
            raise InputError(
                "a ranking's background is not known: normalise by it where a collection, a dense "
                "bundle or words are searched, elsewhere by 'max' or 'minmax'",
                parameters=('normalize',),
            )
        return _shares_of_best(values - background.score, background.chance)
    if chosen is Normalization.MAX:
        return _shares_of_best(values)
    values = _below_one(values)
    width = np.ptp(values)
    if not width:
        return np.ones(len(values))
    unit = width if chosen is Normalization.MINMAX else values.std()
    distances = values - values.min()
    result: Array = distances / unit
    return result


def _shares_of_best(values: Array, chance: float = 0.0) -> Array:
    """Scores as shares of the best one, or of what the best has by chance, if that is more."""
    best = values.max()
    if best <= 0:
        # No share of it exists.
        near: Array = 1.0 / (1.0 + (best - values))
        return near
    shares: Array = np.maximum(values, 0) / max(best, chance)
    return shares


def _below_one(values: Array) -> Array:
    """Scores times the power of two that brings the greatest of them, by size, between 1/2 and 1.

    This changes no digit. Afterwards neither differences nor squares over- or underflow.
    """
    _, exponent = np.frexp(np.abs(values).max())
    below_one: Array = np.ldexp(values, -exponent)
    return below_one


def _summed(rankings: Sequence[Ranking], columns: Sequence[Array], k: int | None) -> Ranking:
    """The k best by the sum of their scores in `columns`, float64 (n,) for each ranking.

    A sum is rounded once, whatever the order of the rankings.
    """
    if len(rankings) == 2:
        first = rankings[0].docids
        rest = dict(zip(rankings[1].docids, columns[1].tolist(), strict=True))
        # A document that the second ranking lacks adds -0.0: x + -0.0 is x, also for -0.0.
        shared = map(rest.pop, first, repeat(-0.0))
        # `rest` is read when `shared` has taken its documents out.
        totals = np.fromiter(chain(shared, rest.values()), np.float64)
        totals[: len(first)] += columns[0]
        docids = np.fromiter(chain(first, rest), object, len(totals))
        return rank_by_score(docids, totals, k)
    terms: dict[str, list[float]] = {}
    for ranking, scores in zip(rankings, columns, strict=True):
        for docid, score in zip(ranking.docids, scores.tolist(), strict=True):
            terms.setdefault(docid, []).append(score)
    totals = np.fromiter(map(fsum, terms.values()), np.float64, len(terms))
    docids = np.fromiter(terms, object, len(terms))
    return rank_by_score(docids, totals, k)

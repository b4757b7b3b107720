"""How alike two rankings are: the share of common hits, and rank-biased overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The probability that a reader goes on to the next rank: 86% of the weight is on the first ten
# ranks.
_P = 0.9


def overlap(first: Sequence[str], second: Sequence[str], depth: int) -> float:
    """The share, 0 to 1, of the best `depth` hits that two rankings of docids have in common.

    It is the number of common hits divided by the hits of the longer ranking, at most `depth`.
    """
    common = set(first[:depth]).intersection(second[:depth])
    longer = min(depth, max(len(first), len(second)))
    return len(common) / longer if longer else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """Rank-biased overlap of docids, 0 to 1 (Webber, Moffat and Zobel 2010, eq. 32).

    It is extrapolated to endless rankings.

    1 for two empty rankings, 0 if only one is empty.
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return float(not long)
    s = len(short)
    n = len(long)
    rank_in_long = {docid: rank for rank, docid in enumerate(long, 1)}
    # The depths from which on a document is in both.
    common_from = [
        max(rank, rank_in_long[docid])
        for rank, docid in enumerate(short, 1)
        if docid in rank_in_long
    ]
    new_at = np.bincount(np.array(common_from, dtype=np.int64), minlength=n + 1)
    common = new_at.cumsum()[1:]
    depths = np.arange(1, n + 1)
    extrapolated = common[s - 1] * np.maximum(depths - s, 0) / s
    terms = _P**depths * (common + extrapolated) / depths
    at_end = (common[-1] - common[s - 1]) / n + common[s - 1] / s
    rbo = (1 - _P) / _P * terms.sum() + at_end * _P**n
    # Rounding may exceed 1.
    return min(1.0, float(rbo))

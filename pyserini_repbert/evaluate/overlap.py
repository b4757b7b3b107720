"""How alike two rankings are: the share of common hits, and rank-biased overlap."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.errors import InputError

PERSISTENCE = 0.9  # p of Webber et al. (2010), which puts 86% of the weight on the first ten ranks


def overlap(first: Sequence[str], second: Sequence[str], depth: int) -> float:
    """The share of the best `depth` hits that two rankings have in common, 0 to 1; 1 for two empty rankings.

    It is the number of common hits divided by the hits of the longer ranking, at most `depth`.

    Parameters
    ----------
    first, second : docids, best first, each distinct
    """
    own, other = set(first[:depth]), set(second[:depth])
    longer = max(len(own), len(other))
    return len(own & other) / longer if longer else 1.0


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """RBO, extrapolated to endless rankings (Webber, Moffat and Zobel 2010, eq. 32), 0 to 1.

    1 for two empty rankings, 0 if only one is empty.

    Parameters
    ----------
    first, second : docids, best first, each distinct
    p : probability that a reader goes on to the next rank, above 0 and below 1

    Raises
    ------
    InputError
        for another `p`
    """
    if not 0 < p < 1:
        raise InputError(f'p is {p}, a probability above 0 and below 1 was expected')
    short, long = sorted((first, second), key=len)
    if not short:
        return float(not long)
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    common = 0
    at_short = 0
    total = 0.0
    for depth in range(1, len(long) + 1):
        new = long[depth - 1]
        if depth <= len(short):
            other = short[depth - 1]
            common += (new == other) or (new in seen_short) + (other in seen_long)
            seen_short.add(other)
            at_short = common if depth == len(short) else at_short
        else:
            common += new in seen_short
        seen_long.add(new)
        total += p**depth * common / depth
        if depth > len(short):
            total += p**depth * at_short * (depth - len(short)) / (len(short) * depth)
    extrapolated = (common - at_short) / len(long) + at_short / len(short)
    return min(1.0, (1 - p) / p * total + extrapolated * p ** len(long))  # rounding may exceed 1

"""Interleave fusion of ranked lists (RepBERT section 4.5.1): pure functions on docids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from pyserini_repbert.errors import InputError

_FILLING = ' '  # pads shorter rankings; no docid has white space


def interleave(rankings: Sequence[Sequence[str]], k: int | None = 1000) -> list[str]:
    """Alternate between rankings, keep each document's highest position, truncate (RepBERT eq. 6).

    First come the first documents of all rankings, in the order of the rankings, then their second documents, and so
    on; where shorter rankings end, the longer ones continue.

    Parameters
    ----------
    rankings : docids of each ranking, best first; any number of rankings of any length
    k : how many documents to keep; None keeps all

    Returns docids, best first, without duplicates.
    """
    if k is not None and k < 0:
        raise InputError(f'cannot keep {k} documents: k has to be at least 0, or None for all')
    merged: dict[str, None] = dict.fromkeys(chain.from_iterable(zip_longest(*rankings, fillvalue=_FILLING)))
    merged.pop(_FILLING, None)
    return list(merged)[:k]


def provenance(rankings: Sequence[Sequence[str]], fused: Sequence[str]) -> list[tuple[int | None, ...]]:
    """The rank, from 1, of each fused document in each ranking; None where it is absent.

    A tuple for each document of `fused`, with an entry for each ranking; a docid that a ranking has twice counts at its
    first place.
    """
    ranks = [dict(zip(reversed(ranking), range(len(ranking), 0, -1), strict=True)) for ranking in rankings]
    return [tuple(ranking.get(docid) for ranking in ranks) for docid in fused]

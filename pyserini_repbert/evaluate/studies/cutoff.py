"""How many hits a reranker should take: the cut-off with the best value on validation topics (EPIC section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure
from pyserini_repbert.evaluate.studies.rerank_depth import rerank_at_depths
from pyserini_repbert.formats.topics import Qrels
from pyserini_repbert.ranking import Run


class Cutoff(NamedTuple):
    """The best cut-off, and the value of the measure at each one that was tried."""

    best: int
    values: dict[int, float]


def tune_cutoff(first: Run, reranked: Run, qrels: Qrels, measure: NamedMeasure, cutoffs: Sequence[int]) -> Cutoff:
    """The cut-off whose reranking has the greatest value, the smallest of equal ones.

    Parameters
    ----------
    first : the first stage's run
    reranked : the same hits with the reranker's scores
    qrels : of the validation topics, which are not those that the result is reported on
    cutoffs : numbers of hits to try, 0 for no reranking

    Raises
    ------
    InputError
        for no cut-offs, or a negative one
    """
    if not cutoffs:
        raise InputError('no cut-offs were given, expected at least one')
    tried = rerank_at_depths(first, reranked, qrels, [measure], sorted(set(cutoffs)))
    values = {cutoff: own[measure.name] for cutoff, own in tried.items()}
    return Cutoff(max(values, key=lambda cutoff: (values[cutoff], -cutoff)), values)

"""How much of a run's value depends on the order of hits with equal scores: each evaluator
breaks ties its own way.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.data.runs import reciprocal_scores, ties_restored
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.ranking import Ranking, Run


class Interval(NamedTuple):
    """A measure over all judged topics: with every tie broken for the worst, as the run breaks
    it, and for the best.
    """

    lowest: float
    given: float
    highest: float


def tie_intervals(run: Run, qrels: Qrels, measures: Sequence[NamedMeasure]) -> dict[str, Interval]:
    """Measure name -> its interval over all ways to break ties.

    The ends are reached by the orders that have the lowest and the highest grades first within each
    tie: exact for measures that never fall when a better hit moves up (AP, nDCG, RR, P, R, ERR,
    Success).
    """
    worst, given, best = (
        evaluate(_ordered(run, qrels, sign), qrels, measures).means for sign in (1, 0, -1)
    )
    return {
        one.name: Interval(worst[one.name], given[one.name], best[one.name]) for one in measures
    }


def ties_as_scored(run: Run) -> Run:
    """A run that this package wrote, whose scores strictly decrease, with its ties restored
    (`ties_restored`).

    A ranking with the scores 1, 1/2, 1/3, … has no ties: interleave and files without scores have
    them for an order.
    """
    return {
        qid: ranking
        if _is_an_order(ranking)
        else Ranking(ranking.docids, ties_restored(ranking.scores))
        for qid, ranking in run.items()
    }


def _is_an_order(ranking: Ranking) -> bool:
    expected = reciprocal_scores(len(ranking.docids))
    return all(abs(one - other) < 1e-3 for one, other in zip(ranking.scores, expected, strict=True))


def tied_share(run: Run) -> float:
    """The share of hits, 0 to 1, whose score another hit of the same query also has."""
    sizes = [
        len(list(group))
        for ranking in run.values()
        for _, group in itertools.groupby(ranking.scores)
    ]
    return sum(size for size in sizes if size > 1) / max(sum(sizes), 1)


def _ordered(run: Run, qrels: Qrels, sign: int) -> Run:
    """The judged topics' hits, tied ones by `sign` times their grade; they keep their order for
    0.
    """
    ordered = {}
    for qid, grades in qrels.items():
        if qid in run:
            hits = zip(run[qid].docids, run[qid].scores, strict=True)
            in_order = sorted(hits, key=lambda hit: (-hit[1], sign * grades.get(hit[0], 0)))
            ordered[qid] = Ranking(
                (docid for docid, _ in in_order), reciprocal_scores(len(in_order))
            )
    return ordered

"""How much of a run lies within another's candidates: the consistency factor (RepBERT eq. 5, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Run


def consistency_factors(
    run: Run, reference: Run, depths: Sequence[int], reference_depth: int | None = 1000
) -> dict[int, float]:
    """The mean proportion of the top n hits that are also among the reference's candidates (RepBERT eq. 5).

    The mean is over the queries for which `run` has hits (the proportion is not defined for others); a query that the
    reference lacks has the proportion 0. Where a query has fewer than n hits, the proportion is that of its hits.

    Parameters
    ----------
    depths : each n, at least 1
    reference_depth : how many of the reference's hits count as candidates (1000 in the paper); None for all

    Returns
    -------
    depth -> factor, 0 to 1: 1 if all hits are among the candidates, 0 if none is

    Raises
    ------
    InputError
        for a depth below 1, or a run without hits
    """
    if not depths or min(depths) < 1:
        raise InputError(f'depths {list(depths)}: numbers of at least 1 were expected')
    totals = dict.fromkeys(depths, 0.0)
    n_queries = 0
    for qid, ranking in run.items():
        if not ranking.docids:
            continue
        n_queries += 1
        candidates = set(reference[qid].docids[:reference_depth]) if qid in reference else set()
        shared = [docid in candidates for docid in ranking.docids[: max(depths)]]
        for depth in totals:
            head = shared[:depth]
            totals[depth] += sum(head) / len(head)
    if not n_queries:
        raise InputError('a run without hits has no consistency factor')
    return {depth: total / n_queries for depth, total in totals.items()}

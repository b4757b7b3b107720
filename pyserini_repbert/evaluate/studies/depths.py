"""Quality by depth: consistency, recall, and the first n hits reranked by saved scores."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate, parse_measures
from pyserini_repbert.ranking import NO_HITS, Ranking, Run


def consistency_factors(run: Run, reference: Run, depths: Sequence[int]) -> dict[int, float]:
    """Depth -> the mean proportion of the top n hits that are also among the reference's candidates
    (RepBERT eq. 5).

    The mean is over the queries for which `run` has hits (the proportion is not defined for
    others); a query that the reference lacks has the proportion 0. Where a query has fewer than n
    hits, the proportion is that of its hits. `depths` are each n, at least 1. All hits of the
    reference are candidates, of which the paper takes 1000.
    """
    totals = dict.fromkeys(depths, 0.0)
    rankings = {qid: ranking.docids for qid, ranking in run.items() if ranking.docids}
    if not rankings:
        raise InputError('a run without hits has no consistency factor')
    for qid, docids in rankings.items():
        candidates = set(reference.get(qid, NO_HITS).docids)
        shared = [docid in candidates for docid in docids[: max(depths)]]
        for depth in totals:
            totals[depth] += sum(shared[:depth]) / len(shared[:depth])
    return {depth: total / len(rankings) for depth, total in totals.items()}


def recall_at_depths(
    run: Run, qrels: Qrels, depths: Sequence[int], rel: int = 1
) -> dict[int, float]:
    """Depth -> recall over all judged topics (RepBERT Figure 1a); a document of grade `rel` or
    higher is relevant.
    """
    names = {depth: f'R(rel={rel})@{depth}' for depth in depths}
    means = evaluate(run, qrels, parse_measures(names.values())).means
    return {depth: means[name] for depth, name in names.items()}


def rerank_top(first: Ranking, reranked: Ranking, n: int) -> Ranking:
    """The first `n` hits ordered as in `reranked`, above the rest, which stays in the first stage's
    order.

    Hits among the first `n` that `reranked` lacks come after the others of these, in the first
    stage's order. The scores are 1, 1/2, 1/3, …
    """
    place = {docid: i for i, docid in enumerate(reranked.docids)}
    head = sorted(first.docids[:n], key=lambda docid: place.get(docid, len(place)))
    return Ranking([*head, *first.docids[n:]], reciprocal_scores(len(first.docids)))


def rerank_at_depths(
    first: Run, reranked: Run, qrels: Qrels, measures: Sequence[NamedMeasure], depths: Sequence[int]
) -> dict[int, dict[str, float]]:
    """Depth -> measure name -> value over all judged topics, if that many hits of each query are
    reranked.

    RepBERT Table 2, Figure 1b. The reranked run has the first stage's hits with the reranker's
    scores. Depth 0 is the first stage alone with its own scores.
    """
    if min(depths, default=-1) < 0:
        raise InputError(f'depths {list(depths)}: numbers of at least 0 were expected')
    values = {}
    for depth in depths:
        run = {
            qid: rerank_top(first[qid], reranked.get(qid, NO_HITS), depth)
            for qid in qrels
            if qid in first
        }
        values[depth] = evaluate(run if depth else first, qrels, measures).means
    return values


def unscored(first: Run, reranked: Run, qrels: Qrels, depth: int) -> int:
    """How many of the first stage's best `depth` hits of the judged topics the reranker's run
    lacks.
    """
    hits = {qid: set(first.get(qid, NO_HITS).docids[:depth]) for qid in qrels}
    return sum(
        len(docids.difference(reranked.get(qid, NO_HITS).docids)) for qid, docids in hits.items()
    )

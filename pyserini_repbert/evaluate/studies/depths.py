"""Quality by depth: consistency, recall, and the first n hits reranked by saved scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyserini_repbert.data.ordering import reciprocal_scores
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure, evaluate, parse_measures
from pyserini_repbert.ranking import NO_HITS, Ranking, Run


def consistency_factors(run: Run, reference: Run, depths: Sequence[int]) -> dict[int, float]:
    """Depth -> the mean share of a run's best hits that a reference run has, too (RepBERT eq. 5).

    The mean is over the queries for which `run` has hits (the proportion is not defined for
    others); a query that the reference lacks has the proportion 0. If a query has fewer than n
    hits, the proportion counts its hits. `depths` are each n, at least 1. All hits of the reference
    are candidates; the paper takes 1000. Raises InputError for a run without hits.
    """
    totals = dict.fromkeys(depths, 0.0)
    rankings = {qid: ranking.docids for qid, ranking in run.items() if ranking.docids}
    if not rankings:
        raise InputError('a run without hits has no consistency factor')
    for qid, docids in rankings.items():
        candidates = set(reference.get(qid, NO_HITS).docids)
        is_shared = [docid in candidates for docid in docids[: max(depths)]]
        for depth in totals:
            top = is_shared[:depth]
            totals[depth] += sum(top) / len(top)
    return {depth: total / len(rankings) for depth, total in totals.items()}


def recall_at_depths(
    run: Run, qrels: Qrels, depths: Sequence[int], rel: int = 1
) -> dict[int, float]:
    """Depth -> recall over all judged topics (RepBERT Figure 1a).

    Parameters
    ----------
    run, qrels : the hits, and the judgments
    depths : hits to look at
    rel : a document of this grade or higher is relevant
    """
    names = {depth: f'R(rel={rel})@{depth}' for depth in depths}
    means = evaluate(run, qrels, parse_measures(names.values())).means
    return {depth: means[name] for depth, name in names.items()}


def rerank_top(first: Ranking, reranked: Ranking, n: int) -> Ranking:
    """The first `n` hits ordered as in `reranked`, above the rest in the first stage's order.

    Hits among the first `n` that `reranked` lacks come after the others of these, in the first
    stage's order. The scores are 1, 1/2, 1/3, …
    """
    rank_of = {docid: rank for rank, docid in enumerate(reranked.docids)}
    last = len(rank_of)
    head = sorted(first.docids[:n], key=lambda docid: rank_of.get(docid, last))
    return Ranking([*head, *first.docids[n:]], reciprocal_scores(len(first.docids)))


def evaluate_depths(
    first: Run, reranked: Run, qrels: Qrels, measures: Sequence[NamedMeasure], depths: Sequence[int]
) -> Iterator[tuple[int, Evaluation]]:
    """Each depth, with the run in which so many hits are reranked, over all judged topics.

    RepBERT has them in Table 2 and Figure 1b.

    Parameters
    ----------
    first : the first stage's run
    reranked : the first stage's hits with the reranker's scores
    qrels, measures : how the runs are scored
    depths : hits to rerank; 0 is the first stage alone with its own scores

    Raises InputError for a depth below 0.
    """
    if min(depths, default=-1) < 0:
        raise InputError(f'depths {list(depths)}: numbers of at least 0 were expected')
    judged = {qid: first[qid] for qid in qrels if qid in first}
    for depth in depths:
        run = first
        if depth:
            run = {
                qid: rerank_top(ranking, reranked.get(qid, NO_HITS), depth)
                for qid, ranking in judged.items()
            }
        yield depth, evaluate(run, qrels, measures)


def count_unscored(first: Run, reranked: Run, qrels: Qrels, depth: int) -> int:
    """How many hits of the first stage the reranker's run lacks.

    Parameters
    ----------
    first, reranked : the two runs
    qrels : whose topics count
    depth : of each topic, this many of the first stage's best hits count
    """
    count = 0
    for qid in qrels:
        docids = set(first.get(qid, NO_HITS).docids[:depth])
        count += len(docids.difference(reranked.get(qid, NO_HITS).docids))
    return count

"""A reranker's scores applied to the first n hits of a first stage (RepBERT Table 2, Figure 1b)."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.formats.runs import reciprocal_scores
from pyserini_repbert.formats.topics import Qrels
from pyserini_repbert.ranking import NO_HITS, Ranking, Run


def rerank_top(first: Ranking, reranked: Ranking, n: int) -> Ranking:
    """The first `n` hits ordered as in `reranked`, above the rest, which stays in the first stage's order.

    A hit among the first `n` that `reranked` lacks comes after those that it has, in the first stage's order. The
    scores are 1, 1/2, 1/3, …
    """
    place = {docid: i for i, docid in enumerate(reranked.docids)}
    head = sorted(first.docids[:n], key=lambda docid: place.get(docid, len(place)))
    docids = (*head, *first.docids[n:])
    return Ranking(docids, reciprocal_scores(len(docids)))


def rerank_at_depths(
    first: Run, reranked: Run, qrels: Qrels, measures: Sequence[NamedMeasure], depths: Sequence[int]
) -> dict[int, dict[str, float]]:
    """Depth -> measure name -> value over all judged topics, when so many hits of each query are reranked.

    Parameters
    ----------
    first : the first stage's run
    reranked : the same hits with the reranker's scores
    depths : at least 0 each, 0 for the first stage alone with its own scores

    Raises
    ------
    InputError
        for a negative depth
    """
    if min(depths, default=-1) < 0:
        raise InputError(f'depths {list(depths)}: numbers of at least 0 were expected')
    found = {}
    for depth in depths:
        run = {qid: rerank_top(first[qid], reranked.get(qid, NO_HITS), depth) for qid in qrels if qid in first}
        found[depth] = evaluate(run if depth else first, qrels, measures).means
    return found


def unscored(first: Run, reranked: Run, qrels: Qrels, depth: int) -> int:
    """How many of the first `depth` hits of the judged topics the reranker's run lacks."""
    count = 0
    for qid in qrels:
        scored = set(reranked.get(qid, NO_HITS).docids)
        count += sum(docid not in scored for docid in first.get(qid, NO_HITS).docids[:depth])
    return count

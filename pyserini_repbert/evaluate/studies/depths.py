"""Quality by depth: recall, the first n hits reranked by saved scores, and the best cut-off of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate, parse_measures
from pyserini_repbert.ranking import NO_HITS, Ranking, Run


def recall_at_depths(run: Run, qrels: Qrels, depths: Sequence[int], rel: int = 1) -> dict[int, float]:
    """Depth -> recall over all judged topics (RepBERT Figure 1a); a document of grade `rel` or higher is relevant."""
    names = {depth: f'R(rel={rel})@{depth}' for depth in depths}
    means = evaluate(run, qrels, parse_measures(names.values())).means
    return {depth: means[name] for depth, name in names.items()}


def rerank_top(first: Ranking, reranked: Ranking, n: int) -> Ranking:
    """The first `n` hits ordered as in `reranked`, above the rest, which stays in the first stage's order.

    Hits among the first `n` that `reranked` lacks come after the others of these, in the first stage's order. The
    scores are 1, 1/2, 1/3, …
    """
    place = {docid: i for i, docid in enumerate(reranked.docids)}
    head = sorted(first.docids[:n], key=lambda docid: place.get(docid, len(place)))
    docids = (*head, *first.docids[n:])
    return Ranking(docids, reciprocal_scores(len(docids)))


def rerank_at_depths(
    first: Run, reranked: Run, qrels: Qrels, measures: Sequence[NamedMeasure], depths: Sequence[int]
) -> dict[int, dict[str, float]]:
    """Depth -> measure name -> value over all judged topics, if that many hits of each query are reranked.

    RepBERT Table 2, Figure 1b.

    Parameters
    ----------
    first : the first stage's run
    reranked : the same hits with the reranker's scores
    depths : at least 0 each, 0 for the first stage alone with its own scores

    Raises
    ------
    InputError
        for no depths, or a negative one
    """
    if min(depths, default=-1) < 0:
        raise InputError(f'depths {list(depths)}: numbers of at least 0 were expected')
    found = {}
    for depth in depths:
        run = {qid: rerank_top(first[qid], reranked.get(qid, NO_HITS), depth) for qid in qrels if qid in first}
        found[depth] = evaluate(run if depth else first, qrels, measures).means
    return found


def unscored(first: Run, reranked: Run, qrels: Qrels, depth: int) -> int:
    """How many of the first stage's best `depth` hits of the judged topics the reranker's run lacks."""
    count = 0
    for qid in qrels:
        scored = set(reranked.get(qid, NO_HITS).docids)
        count += sum(docid not in scored for docid in first.get(qid, NO_HITS).docids[:depth])
    return count


class Cutoff(NamedTuple):
    """The best cut-off, and the value of the measure at each one that was tried."""

    best: int
    values: dict[int, float]


def tune_cutoff(first: Run, reranked: Run, qrels: Qrels, measure: NamedMeasure, cutoffs: Sequence[int]) -> Cutoff:
    """The cut-off with the greatest value of the measure, the smallest of equal ones (EPIC section 3).

    Parameters
    ----------
    first : the first stage's run
    reranked : the same hits with the reranker's scores
    qrels : of the validation topics, which should not be those that the result is reported on
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

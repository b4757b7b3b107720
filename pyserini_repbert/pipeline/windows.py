"""A window: some queries that go through all stages together, so that their texts share batches by length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.costs import StageCost
from pyserini_repbert.pipeline.partial import Window
from pyserini_repbert.pipeline.stages import Lists, Stage, apply_stage, cost_since
from pyserini_repbert.ranking import Candidate, Query, reordered
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.duobert import DuoBertReranker
from pyserini_repbert.rerank.kept import KeptScores, needed_pairs, over, submatrix
from pyserini_repbert.runs import RankedList

WINDOW_INPUTS = 8192  # model inputs of a window: enough to fill batches by length, and what a kill can cost


def planned_inferences(stages: Sequence[Stage], n_candidates: int) -> int:
    """How many model inputs a list of candidates takes in all stages."""
    return sum(stage.reranker.inferences(min(stage.k, n_candidates)) for stage in stages)


def cut_windows(planned: Sequence[int], size: int = WINDOW_INPUTS) -> list[range]:
    """Positions of queries cut into windows: each ends with the query that fills it."""
    windows, start, total = [], 0, 0
    for position, inferences in enumerate(planned):
        total += inferences
        if total >= size:
            windows.append(range(start, position + 1))
            start, total = position + 1, 0
    return [*windows, range(start, len(planned))] if start < len(planned) else windows


def run_window(
    stages: Sequence[Stage],
    topics: Sequence[Query],
    lists: Lists,
    drop_rest: bool = False,
    keep: Sequence[int] | None = None,
    on_progress: Progress | None = None,
) -> Window:
    """All stages for some queries, whose candidates have text.

    Parameters
    ----------
    keep : keep the scores of the last two stages, so that shallower settings can be replayed: the further depths k0
        for which pairs are compared; None keeps nothing

    Raises
    ------
    InputError
        where scores are to be kept and the last stage is neither duoBERT nor the only one
    """
    queries = [query.text for query in topics]
    pairwise = stages[-1] if isinstance(stages[-1].reranker, DuoBertReranker) else None
    if keep is not None and pairwise is None and len(stages) > 1:
        raise InputError('scores are kept of monoBERT and duoBERT: the last stage has to be duoBERT, or the only one')
    costs: list[StageCost] = []
    incoming = lists
    for stage in stages[:-1] if keep is not None and pairwise else stages:
        incoming = lists
        lists, cost = apply_stage(stage, queries, lists, drop_rest, on_progress)
        costs.append(cost)
    kept: list[KeptScores] = []
    if keep is not None:
        scored = stages[-2] if pairwise and len(stages) > 1 else None if pairwise else stages[-1]
        kept = _pointwise(topics, incoming, lists, scored)
        if pairwise:
            depths = [scored.k if scored else 0, *keep]
            lists, kept, cost = _compared(pairwise, kept, queries, lists, depths, drop_rest, on_progress)
            costs.append(cost)
    rankings = tuple(
        (query.qid, RankedList([item.docid for item in items], [item.score for item in items]))
        for query, items in zip(topics, lists, strict=True)
    )
    return Window(rankings, tuple(costs), tuple(kept))


def _pointwise(topics: Sequence[Query], incoming: Lists, outgoing: Lists, stage: Stage | None) -> list[KeptScores]:
    """The candidates as they came to a stage, with its scores."""
    kept = []
    for query, old, new in zip(topics, incoming, outgoing, strict=True):
        scores = {item.docid: item.score for item in new}
        known = [scores[item.docid] for item in old[: stage.k]] if stage else []
        docids = tuple(item.docid for item in old)
        nobody = np.empty(0, dtype=np.int64)
        kept.append(KeptScores(query.qid, query.text, docids, np.array(known, dtype=float), nobody, np.empty((0, 0))))
    return kept


def _compared(
    stage: Stage,
    kept: Sequence[KeptScores],
    queries: Sequence[str],
    lists: Lists,
    depths: Sequence[int],
    drop_rest: bool,
    on_progress: Progress | None,
) -> tuple[Lists, list[KeptScores], StageCost]:
    """duoBERT's stage, with all pairs compared that replaying the `depths` takes; the first of them is this run's."""
    reranker = stage.reranker
    if not isinstance(reranker, DuoBertReranker):
        raise InputError('pairs are compared by duoBERT')
    before, start = replace(reranker.work), time.perf_counter()
    members, pairs, groups = [], [], []
    for own, items in zip(kept, lists, strict=True):
        chosen, wanted = needed_pairs(own, depths, stage.k)
        by_docid = {item.docid: item for item in items}
        members.append(chosen)
        pairs.append(wanted)
        groups.append([by_docid[own.docids[position]] for position in chosen.tolist()])
    matrices = reranker.pair_differences(queries, groups, pairs, on_progress)
    found, done = [], []
    for own, chosen, matrix, items, query in zip(kept, members, matrices, lists, queries, strict=True):
        whole = replace(own, members=chosen, differences=matrix)
        head = items[: stage.k]
        place = {docid: position for position, docid in enumerate(own.docids)}
        differences = submatrix(whole, np.array([place[item.docid] for item in head], dtype=np.int64))
        scores = reranker.aggregated(query, differences).tolist()
        ranked = reordered(replace(item, score=score) for item, score in zip(head, scores, strict=True))
        rest: list[Candidate] = [] if drop_rest else items[stage.k :]
        found.append(over(ranked, rest))
        done.append(whole)
    cost = cost_since(before, stage, groups, time.perf_counter() - start)
    return found, done, cost

"""Query batches: queries that go through all stages together, so that their texts fill batches of similar length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.costs import StageCost
from pyserini_repbert.pipeline.resume import BatchResult
from pyserini_repbert.pipeline.stages import Stage, apply_stage, cost_since
from pyserini_repbert.ranking import NO_HITS, Query, Ranking
from pyserini_repbert.rerank.base import Progress, rescored
from pyserini_repbert.rerank.duobert import DuoBertReranker
from pyserini_repbert.rerank.saved_scores import SavedScores, needed_pairs, submatrix

BATCH_INPUTS = 8192  # model inputs of a query batch: enough to sort by length, and the most work that a kill can lose


def planned_inferences(stages: Sequence[Stage], n_candidates: int) -> int:
    """The number of model inputs that a list of candidates takes in all stages."""
    return sum(stage.reranker.inferences(min(stage.k, n_candidates)) for stage in stages)


def cut_batches(planned: Sequence[int], size: int = BATCH_INPUTS) -> list[range]:
    """Ranges of query positions, one a batch: a batch ends with the query that brings it to `size` model inputs."""
    batches, start, total = [], 0, 0
    for position, inferences in enumerate(planned):
        total += inferences
        if total >= size:
            batches.append(range(start, position + 1))
            start, total = position + 1, 0
    return [*batches, range(start, len(planned))] if start < len(planned) else batches


def run_batch(
    stages: Sequence[Stage],
    topics: Sequence[Query],
    rankings: Sequence[Ranking],
    drop_rest: bool = False,
    save: Sequence[int] | None = None,
    on_progress: Progress | None = None,
) -> BatchResult:
    """Run all stages for some queries, whose candidates have text.

    Parameters
    ----------
    save : None saves no scores; else those of the last two stages are saved, so that shallower settings can be
        replayed: the further depths k0 for which duoBERT compares pairs

    Raises
    ------
    InputError
        where scores are to be saved, and the last of several stages is not duoBERT
    """
    queries = [query.text for query in topics]
    last = stages[-1].reranker
    pairwise = last if isinstance(last, DuoBertReranker) else None
    if save is not None and pairwise is None and len(stages) > 1:
        raise InputError('scores are saved of monoBERT and duoBERT: the last stage has to be duoBERT, or the only one')
    costs: list[StageCost] = []
    incoming = rankings
    for stage in stages[:-1] if save is not None and pairwise else stages:
        incoming = rankings
        rankings, cost = apply_stage(stage, queries, rankings, drop_rest, on_progress)
        costs.append(cost)
    saved: list[SavedScores] = []
    if save is not None:
        scored = stages[-2] if pairwise and len(stages) > 1 else None if pairwise else stages[-1]
        saved = _pointwise(topics, incoming, rankings, scored)
        if pairwise:
            depths = [scored.k if scored else 0, *save]
            rankings, saved, cost = _compared(
                stages[-1], pairwise, saved, queries, rankings, depths, drop_rest, on_progress
            )
            costs.append(cost)
    own = tuple(
        (query.qid, Ranking(ranking.docids, ranking.scores)) for query, ranking in zip(topics, rankings, strict=True)
    )
    return BatchResult(own, tuple(costs), tuple(saved))


def _pointwise(
    topics: Sequence[Query], incoming: Sequence[Ranking], outgoing: Sequence[Ranking], stage: Stage | None
) -> list[SavedScores]:
    """Each query's candidates in the order in which a stage received them, with its scores if there is one."""
    saved = []
    for query, old, new in zip(topics, incoming, outgoing, strict=True):
        scores = dict(zip(new.docids, new.scores, strict=True))
        known = [scores[docid] for docid in old.docids[: stage.k]] if stage else []
        nobody = np.empty(0, dtype=np.int64)
        saved.append(
            SavedScores(query.qid, query.text, old.docids, np.array(known, dtype=float), nobody, np.empty((0, 0)))
        )
    return saved


def _compared(
    stage: Stage,
    reranker: DuoBertReranker,
    saved: Sequence[SavedScores],
    queries: Sequence[str],
    rankings: Sequence[Ranking],
    depths: Sequence[int],
    drop_rest: bool,
    on_progress: Progress | None,
) -> tuple[list[Ranking], list[SavedScores], StageCost]:
    """Run duoBERT's stage, comparing all pairs that replays at the `depths` need; the first depth is this run's."""
    before, start = replace(reranker.work), time.perf_counter()
    members, pairs, groups = [], [], []
    for own, ranking in zip(saved, rankings, strict=True):
        chosen, wanted = needed_pairs(own, depths, stage.k)
        by_docid = {item.docid: item for item in ranking}
        members.append(chosen)
        pairs.append(wanted)
        groups.append(Ranking.of(by_docid[own.docids[position]] for position in chosen.tolist()))
    matrices = reranker.pair_differences(queries, groups, pairs, on_progress)
    found, done = [], []
    for own, chosen, matrix, ranking, query in zip(saved, members, matrices, rankings, queries, strict=True):
        whole = replace(own, members=chosen, differences=matrix)
        head = ranking[: stage.k]
        place = {docid: position for position, docid in enumerate(own.docids)}
        differences = submatrix(whole, np.array([place[docid] for docid in head.docids], dtype=np.int64))
        ranked = rescored(head, reranker.aggregated(query, differences))
        found.append(ranked.above(NO_HITS if drop_rest else ranking[stage.k :]))
        done.append(whole)
    cost = cost_since(before, stage, groups, time.perf_counter() - start)
    return found, done, cost

"""Stages applied to rankings, and `Pipeline`: a first stage with stages behind it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.passages import PassageTexts
from pyserini_repbert.pipeline.costs import StageCost, added
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Work
from pyserini_repbert.rerank.kept import over
from pyserini_repbert.runs import RankedList

FIRST_STAGE_HITS = 1000  # Multi-Stage section 4.1: k0
Lists = list[list[Candidate]]


class Searcher(Protocol):
    """A first stage: RepBertSearcher, HybridSearcher, one of Pyserini's or ours on Lucene."""

    def batch_search(self, queries: Any, qids: Any, k: int = 10, threads: int = 1) -> Mapping[str, Sequence[Any]]:
        """{qid: hits}, a hit having `docid` and `score`."""


@dataclass(frozen=True)
class Stage:
    """A reranker and how many of the best candidates it takes (k_n of Multi-Stage section 3)."""

    reranker: Reranker
    k: int
    label: str = ''

    @property
    def name(self) -> str:
        """For reports."""
        return self.label or f'{getattr(self.reranker, "name", type(self.reranker).__name__)}@{self.k}'


def check_depths(names: Sequence[str], depths: Sequence[int]) -> None:
    """Raises InputError where there is no stage, or where one takes more candidates than the one before it."""
    if not depths:
        raise InputError('a pipeline needs at least one stage behind the first: give a reranker')
    for before, after in zip(range(len(depths)), range(1, len(depths)), strict=False):
        if depths[after] > depths[before]:
            raise InputError(
                f'stage {names[after]} takes {depths[after]} candidates, {names[before]} before it only '
                f'{depths[before]}: each stage takes at most as many as the one before'
            )
    if min(depths) < 1:
        raise InputError(f'depths {list(depths)}: each stage takes at least 1 candidate')


def apply_stage(
    stage: Stage,
    queries: Sequence[str],
    lists: Sequence[Sequence[Candidate]],
    drop_rest: bool = False,
    on_progress: Progress | None = None,
) -> tuple[Lists, StageCost]:
    """Rerank the k best of each list; the rest stays below them in its order, or is dropped."""
    before = None if stage.reranker.work is None else replace(stage.reranker.work)
    start = time.perf_counter()
    heads = [candidates[: stage.k] for candidates in lists]
    reranked = stage.reranker.rerank_many(queries, heads, on_progress=on_progress)
    seconds = time.perf_counter() - start
    joined = [
        over(head, [] if drop_rest else candidates[stage.k :]) for head, candidates in zip(reranked, lists, strict=True)
    ]
    return joined, cost_since(before, stage, heads, seconds)


def cost_since(before: Work | None, stage: Stage, heads: Sequence[Sequence[Candidate]], seconds: float) -> StageCost:
    """The cost of reranking `heads`: what the reranker counted since `before`, or as much as follows from the lists."""
    work, precision, n = stage.reranker.work, stage.reranker.precision, sum(map(len, heads))
    if before is None or work is None:
        inferences = sum(stage.reranker.inferences(len(head)) for head in heads)
        return StageCost(stage.name, len(heads), inferences, seconds, None, n, None, precision=precision)
    return StageCost(
        stage.name,
        len(heads),
        work.inferences - before.inferences,
        seconds,
        work.tokens - before.tokens,
        work.candidates - before.candidates,
        work.truncated - before.truncated,
        work.stored - before.stored,
        precision,
    )


def with_texts(lists: Sequence[Sequence[Candidate]], texts: PassageTexts | None, depth: int) -> Lists:
    """The lists, their first `depth` candidates with text where they had none.

    Raises InputError where `texts` lacks a passage.
    """
    wanted = [candidate.docid for items in lists for candidate in items[:depth] if candidate.text is None]
    if texts is None or not wanted:
        return [list(candidates) for candidates in lists]
    docids = list(dict.fromkeys(wanted))
    found = dict(zip(docids, texts.texts(docids), strict=True))
    if missing := [docid for docid in docids if found[docid] is None]:
        raise InputError(
            f"{len(missing)} candidates have no text, '{missing[0]}' among them: "
            'give the corpus or the index that the run was made from (--corpus, --index)'
        )
    filled = []
    for candidates in lists:
        head = [item if item.text is not None else replace(item, text=found[item.docid]) for item in candidates[:depth]]
        filled.append([*head, *candidates[depth:]])
    return filled


class Pipeline:
    """H0 … HN of Multi-Stage section 3: each stage reranks the best candidates of the one before.

    Parameters
    ----------
    first_stage : a searcher, or a run (a run file's content, or what fusing runs gives): {qid: RankedList}
    stages : (reranker, k) or Stage; k must not grow from stage to stage
    texts : gives passage text by docid; not needed where no reranker reads text
    hits : how many candidates a searcher gives; default: as many as the first reranker takes
    drop_rest : drop the candidates that a stage did not rerank, instead of leaving them below in their order

    Attributes
    ----------
    costs : the costs of the last call, by stage

    Raises
    ------
    InputError
        for no stages, or one that takes more candidates than the one before it
    """

    def __init__(
        self,
        first_stage: Searcher | Mapping[str, RankedList],
        stages: Sequence[Stage | tuple[Reranker, int]],
        texts: PassageTexts | None = None,
        hits: int | None = None,
        drop_rest: bool = False,
    ) -> None:
        self.stages = [stage if isinstance(stage, Stage) else Stage(*stage) for stage in stages]
        check_depths([stage.name for stage in self.stages], [stage.k for stage in self.stages])
        self.first_stage, self.texts, self.drop_rest = first_stage, texts, drop_rest
        self.hits = hits or self.stages[0].k
        self.costs: list[StageCost] = []

    def search(self, query: str, k: int | None = None) -> list[Candidate]:
        """The ranking of one query, best first, at most `k` candidates. Raises InputError where H0 is a run."""
        if isinstance(self.first_stage, Mapping):
            raise InputError('the first stage is a run, which knows qids only: use batch_search')
        return self.batch_search([query], ['0'], k)['0']

    def batch_search(
        self,
        queries: Sequence[str],
        qids: Sequence[str],
        k: int | None = None,
        threads: int = 1,
        on_progress: Progress | None = None,
    ) -> dict[str, list[Candidate]]:
        """{qid: ranking}, best first; a query for which the first stage finds nothing has an empty ranking.

        Raises
        ------
        InputError
            for a candidate whose text cannot be found
        """
        lists = with_texts(self._first(queries, qids, threads), self.texts, self.stages[0].k)
        self.costs = []
        for stage in self.stages:
            lists, cost = apply_stage(stage, queries, lists, self.drop_rest, on_progress)
            self.costs.append(cost)
        return {qid: candidates[:k] for qid, candidates in zip(qids, lists, strict=True)}

    def rankings(self, topics: Sequence[Query], k: int | None = None, at_once: int = 8) -> list[Ranking]:
        """Rankings of topics, `at_once` of them together, in their order."""
        found, costs = [], []
        for start in range(0, len(topics), at_once):
            part = topics[start : start + at_once]
            ranked = self.batch_search([query.text for query in part], [query.qid for query in part], k)
            found += [Ranking(query, tuple(ranked[query.qid])) for query in part]
            costs.append(self.costs)
        self.costs = added(costs)
        return found

    def _first(self, queries: Sequence[str], qids: Sequence[str], threads: int) -> Lists:
        if isinstance(self.first_stage, Mapping):
            lists = [self.first_stage.get(qid, RankedList([], [])) for qid in qids]
            return [[Candidate(*hit) for hit in zip(*ranked, strict=True)] for ranked in lists]
        found = self.first_stage.batch_search(list(queries), list(qids), k=self.hits, threads=threads)
        return [[Candidate(hit.docid, float(hit.score)) for hit in found[qid]] for qid in qids]

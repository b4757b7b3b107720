"""A stage of the pipeline: a reranker applied to the best candidates, and its cost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.costs import StageCost
from pyserini_repbert.ranking import NO_HITS, Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Work


@dataclass(frozen=True)
class Stage:
    """A reranker, and the number k of best candidates that it takes (k_{n-1} of stage H_n in Multi-Stage section 3)."""

    reranker: Reranker
    k: int
    label: str = ''

    @property
    def name(self) -> str:
        """The label, or 'RERANKER@K', for reports."""
        return self.label or f'{getattr(self.reranker, "name", type(self.reranker).__name__)}@{self.k}'


def check_depths(names: Sequence[str], depths: Sequence[int]) -> None:
    """Raises InputError for no stages, a depth below 1, or a stage that takes more candidates than the one before."""
    if not depths:
        raise InputError('a pipeline needs at least one stage behind the first: give a reranker')
    for (before, most), (after, depth) in itertools.pairwise(zip(names, depths, strict=True)):
        if depth > most:
            raise InputError(
                f'stage {after} takes {depth} candidates, {before} before it only {most}: each stage takes at most as '
                'many as the one before'
            )
    if min(depths) < 1:
        raise InputError(f'depths {list(depths)}: each stage takes at least 1 candidate')


def apply_stage(
    stage: Stage,
    queries: Sequence[str],
    rankings: Sequence[Ranking],
    drop_rest: bool = False,
    on_progress: Progress | None = None,
) -> tuple[list[Ranking], StageCost]:
    """Rerank the k best of each ranking; the rest stays below in its order, or is dropped. Returns the cost as well."""
    before = None if stage.reranker.work is None else replace(stage.reranker.work)
    start = time.perf_counter()
    heads = [ranking[: stage.k] for ranking in rankings]
    reranked = stage.reranker.reranked(queries, heads, on_progress)
    seconds = time.perf_counter() - start
    joined = [
        head.above(NO_HITS if drop_rest else ranking[stage.k :])
        for head, ranking in zip(reranked, rankings, strict=True)
    ]
    return joined, cost_since(before, stage, heads, seconds)


def cost_since(before: Work | None, stage: Stage, heads: Sequence[Ranking], seconds: float) -> StageCost:
    """The cost of reranking `heads`, from the reranker's counts since `before`; without counts, from list lengths."""
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


def with_texts(rankings: Sequence[Ranking], texts: PassageTexts | None, depth: int) -> list[Ranking]:
    """The rankings, with text for those of the first `depth` candidates that had none.

    Raises InputError where `texts` lacks a passage.
    """
    heads = [ranking[:depth] for ranking in rankings]
    wanted = dict.fromkeys(item.docid for head in heads for item in head if item.text is None)
    if texts is None or not wanted:
        return list(rankings)
    found = dict(zip(wanted, texts.texts(list(wanted)), strict=True))
    if missing := [docid for docid, text in found.items() if text is None]:
        raise InputError(
            f"{len(missing)} candidates have no text, '{missing[0]}' among them: "
            'give the corpus or the index that the run was made from',
            parameters=('corpus', 'index'),
        )
    return [ranking.with_texts(found) for ranking in rankings]

"""`Fusion`: rankers that search at the same time, and whose rankings are fused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from pyserini_repbert.fusion.fusing import combiner, fuse_runs
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.fusion.threshold import (
    BeginningDepth,
    FirstHits,
    FusedHits,
    fuse_first_hits,
    next_depth,
    second_depth,
)
from pyserini_repbert.ranking import NO_HITS, Query, Ranker, Ranking, Run, Searcher
from pyserini_repbert.trace import Trace

_Ranker = TypeVar('_Ranker', bound=Ranker)


class Fusion(Searcher, recorded_as='Fusion'):
    """Several rankers, fused in their order; a single one keeps its ranking.

    Parameters
    ----------
    parts : first stages, which get the same topics at the same time: queries are encoded while
        Lucene searches
    settings : how; default: interleaved

    Attributes
    ----------
    least_depth : hits of each part that are searched at least, for who reads the rankings of parts;
        no more of them are fused than without it
    """

    least_depth: int = 0
    _searches_in_turn = False

    def __init__(self, parts: Sequence[Ranker], settings: FusionSettings | None = None) -> None:
        self.settings = settings or FusionSettings()
        # Weights of another number of rankings are refused at once.
        combiner(len(parts), self.settings)
        self.parts = tuple(parts)
        self._beginning_depth = BeginningDepth()
        self.name = '+'.join(part.label for part in parts)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        traces = [trace.part(name) for name in self.part_names]
        if len(self.parts) == 1:
            return self._with_threads(self.parts[0]).rank(topics, None, k, traces[0])
        if self.settings.fuses_whole and k is not None and self._gives_all_scores:
            return self._rank_whole(topics, k, traces)
        depth = self.settings.depth_for(k)
        if depth is None:
            return self.fused(topics, self._search(topics, None, traces), k)
        runs = self._search(topics, max(depth, self.least_depth), traces)
        return self.fused(topics, [_first_hits(run, depth) for run in runs], k)

    @property
    def _gives_all_scores(self) -> bool:
        return all(part.gives_document_scores for part in self.parts)

    def _rank_whole(self, topics: Sequence[Query], k: int, traces: Sequence[Trace]) -> Run:
        """The k best of the fusion of whole rankings, which are searched as deep as it takes."""
        fused: Run = {}
        depth = max(self._beginning_depth.choose(k), self.least_depth)
        waiting = list(topics)
        while waiting:
            runs = self._search(waiting, depth, traces)
            deeper = next_depth(depth, k)
            later = []
            for topic in waiting:
                rankings = [run[topic.qid] for run in runs]
                best = self._fuse_first_hits(topic, rankings, depth, k)
                fused[topic.qid] = best.ranking
                if not best.is_proven and deeper is not None:
                    later.append(topic)
            if depth < second_depth(k):
                self._beginning_depth.learn(was_enough=2 * len(later) <= len(topics))
            waiting = later
            depth = deeper or depth
        return fused

    def _fuse_first_hits(
        self, topic: Query, rankings: Sequence[Ranking], depth: int, k: int
    ) -> FusedHits:
        """The k best of the hits of each part, which was searched so deep."""
        parts = []
        for part, ranking in zip(self.parts, rankings, strict=True):
            scores_of = partial(part.document_scores, topic, hits=ranking)
            is_whole = len(ranking) < depth
            background = self.settings.background_of(ranking)
            unjudged = part.unjudged(topic) if self.settings.is_above_background else None
            parts.append(FirstHits(ranking.docids, is_whole, scores_of, background, unjudged))
        return fuse_first_hits(parts, self.settings, k)

    def _search(
        self, topics: Sequence[Query], depth: int | None, traces: Sequence[Trace]
    ) -> list[Run]:
        """The run of each part, so deep."""
        if len(topics) == 1 and self._searches_in_turn:
            runs = []
            for part, part_trace in zip(self.parts, traces, strict=True):
                runs.append(self._with_threads(part).rank(topics, None, depth, part_trace))
            return runs
        with ThreadPoolExecutor(len(self.parts)) as pool:
            others = []
            for part, part_trace in zip(self.parts[1:], traces[1:], strict=True):
                rank = self._with_threads(part).rank
                others.append(pool.submit(rank, topics, None, depth, part_trace))
            # The first part ranks in this thread.
            runs = [self._with_threads(self.parts[0]).rank(topics, None, depth, traces[0])]
            runs += [future.result() for future in others]
        return runs

    def _with_threads(self, part: Ranker) -> Ranker:
        return part if self.threads == 1 else part.with_settings(threads=self.threads)

    def fused(self, topics: Sequence[Query], runs: Sequence[Run], k: int | None) -> Run:
        """The fusion of one run of the topics from each part, k deep."""
        if not self.settings.is_above_background:
            return fuse_runs(runs, self.settings, k)
        fused: Run = {}
        for topic in topics:
            parts = []
            for part, run in zip(self.parts, runs, strict=True):
                ranking = run.get(topic.qid, NO_HITS)
                parts.append(FirstHits.of_ranking(ranking, self.settings, part.unjudged(topic)))
            fused[topic.qid] = fuse_first_hits(parts, self.settings, k).ranking
        return fused

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first part that stores any."""
        stored = (part.texts(docids) for part in self.parts)
        return next(filter(any, stored), [None] * len(docids))


def _first_hits(run: Run, depth: int) -> Run:
    """The run with so many hits of each topic."""
    return {qid: ranking[:depth] for qid, ranking in run.items()}


def look_deeper(ranker: _Ranker, depth: int) -> _Ranker:
    """The ranker, whose fusions search each part at least so deep.

    This is for callers that read the rankings of the parts. The fused ranking does not change.
    """
    changes: dict[str, Any] = {}
    if ranker.parts:
        changes['parts'] = tuple(look_deeper(part, depth) for part in ranker.parts)
    if isinstance(ranker, Fusion):
        changes['least_depth'] = depth
    return ranker.with_settings(**changes) if changes else ranker

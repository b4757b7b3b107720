"""`Fusion`: rankers that search at the same time, and whose rankings are fused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyserini_repbert.fusion.fusing import combiner, fuse_runs
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Query, Ranker, Run, Searcher
from pyserini_repbert.trace import Trace


class Fusion(Searcher, recorded_as='Fusion'):
    """Several rankers, fused in their order; a single one keeps its ranking.

    Parameters
    ----------
    parts : first stages, which get the same topics at the same time: queries are encoded while
        Lucene searches
    settings : how; default: interleaved
    """

    def __init__(self, parts: Sequence[Ranker], settings: FusionSettings | None = None) -> None:
        self.settings = settings or FusionSettings()
        # Weights of another number of rankings are refused at once.
        combiner(len(parts), self.settings)
        self.parts = tuple(parts)
        self.name = '+'.join(part.label for part in parts)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        traces = [trace.part(name) for name in self.part_names]
        if len(self.parts) == 1:
            return self._with_threads(self.parts[0]).rank(topics, None, k, traces[0])
        depth = self.settings.depth_for(k)
        with ThreadPoolExecutor(len(self.parts)) as pool:
            others = []
            for part, part_trace in zip(self.parts[1:], traces[1:], strict=True):
                rank = self._with_threads(part).rank
                others.append(pool.submit(rank, topics, None, depth, part_trace))
            # The first part ranks in this thread.
            runs = [self._with_threads(self.parts[0]).rank(topics, None, depth, traces[0])]
            runs += [future.result() for future in others]
        return self.fused(runs, k)

    def _with_threads(self, part: Ranker) -> Ranker:
        return part if self.threads == 1 else part.with_settings(threads=self.threads)

    def fused(self, runs: Sequence[Run], k: int | None) -> Run:
        """The fusion of one run from each part, k deep."""
        return fuse_runs(runs, self.settings, k)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first part that stores any."""
        stored = (part.texts(docids) for part in self.parts)
        return next(filter(any, stored), [None] * len(docids))

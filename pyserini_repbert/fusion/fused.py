"""`Fusion`: rankers that search at the same time, and whose rankings are fused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyserini_repbert.fusion.fusing import combiner, fuse
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.trace import Trace

DEPTH = 1000  # RepBERT eq. 6 merges two lists of 1000


class Fusion(Ranker):
    """Several rankers, fused in their order; a single one keeps its ranking.

    Parameters
    ----------
    parts : first stages, which get the same topics at the same time: queries are encoded while
        Lucene searches
    method, alpha, rrf_k, normalize : as in `fusion.fuse`
    depth : hits of each part that are fused; default: `fused_depth`
    """

    def __init__(
        self,
        parts: Sequence[Ranker],
        method: str = FusionMethod.INTERLEAVE,
        alpha: float | Sequence[float] = ALPHA,
        rrf_k: float = RRF_K,
        depth: int | None = None,
        normalize: str = Normalization.MINMAX,
    ) -> None:
        self.method = str(FusionMethod(method))
        self.normalize = str(Normalization(normalize))
        # Wrong settings are refused at once.
        combiner(len(parts), method, alpha, rrf_k, normalize)
        self.parts = tuple(parts)
        self.depth = depth
        self.alpha = alpha
        self.rrf_k = rrf_k
        self.name = '+'.join(part.label for part in parts)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        traces = [trace.part(name) for name in self.part_names]
        if len(self.parts) == 1:
            return self._with_threads(self.parts[0]).rank(topics, None, k, traces[0])
        depth = self.depth or fused_depth(self.method, k)
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
        return fuse(runs, self.method, k, self.alpha, self.rrf_k, self.normalize)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first part that stores any."""
        stored = (part.texts(docids) for part in self.parts)
        return next(filter(any, stored), [None] * len(docids))


def fused_depth(method: str, k: int | None) -> int | None:
    """The default number of hits fused from each ranking, for k fused ones.

    It is k for 'interleave', else at least `DEPTH`: the first k of interleaved rankings depend on
    the first k of each only; with other methods, lower ranks count.
    """
    if k is None or method == FusionMethod.INTERLEAVE:
        return k
    return max(k, DEPTH)

"""`Fusion`: rankers that search at the same time, and whose rankings are fused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyserini_repbert.fusion.methods import (
    ALPHA,
    RRF_K,
    FusionMethod,
    Normalization,
    combiner,
    fuse,
)
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
        normalize: str = Normalization.NONE,
    ) -> None:
        combiner(len(parts), method, alpha, rrf_k, normalize)  # refuses wrong settings at once
        self.parts = tuple(parts)
        self.method = str(method)
        self.depth = depth
        self.alpha = alpha
        self.rrf_k = rrf_k
        self.normalize = normalize
        self.name = '+'.join(part.label for part in parts)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        depth = k if len(self.parts) == 1 else self.depth or fused_depth(self.method, k)
        threads = self.threads
        parts = [
            part if threads == 1 else part.with_settings(threads=threads) for part in self.parts
        ]
        traces = [trace.at(place, part.label) for place, part in enumerate(parts)]
        with ThreadPoolExecutor(len(parts)) as pool:
            others = zip(parts[1:], traces[1:], strict=True)
            waiting = [pool.submit(part.rank, topics, None, depth, noted) for part, noted in others]
            runs = [
                parts[0].rank(topics, None, depth, traces[0]),
                *(future.result() for future in waiting),
            ]
        return runs[0] if len(runs) == 1 else self.fused(runs, k)

    def fused(self, runs: Sequence[Run], k: int | None) -> Run:
        """The fusion of one run from each part, k deep."""
        return fuse(runs, self.method, k, self.alpha, self.rrf_k, self.normalize)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first part that stores any."""
        stored = (part.texts(docids) for part in self.parts)
        return next(filter(any, stored), [None] * len(docids))


def fused_depth(method: str, k: int | None) -> int | None:
    """The default number of hits fused from each ranking for k fused ones: k for 'interleave', else
    at least `DEPTH`.

    The first k of interleaved rankings depend on the first k of each only; with other methods,
    lower ranks count.
    """
    return k if k is None or method == FusionMethod.INTERLEAVE else max(k, DEPTH)

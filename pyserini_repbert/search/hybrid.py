"""`HybridSearcher`, with the interface of Pyserini's class of that name; any such searcher as a `Ranker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import DEPTH, Fusion
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking, Run
from pyserini_repbert.trace import Trace


class Searcher(Protocol):
    """A searcher with Pyserini's interface; a hit has `docid` and `score`."""

    def batch_search(self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> dict[str, list[Any]]:
        """Hits by qid."""


class PyseriniRanker(Ranker):
    """Ranks with a searcher of Pyserini's, whose hits have no text unless it has a method `texts`."""

    def __init__(self, searcher: Searcher) -> None:
        self.searcher, self.name = searcher, type(searcher).__name__

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        texts, qids = [topic.text for topic in topics], [topic.qid for topic in topics]
        hits = self.searcher.batch_search(texts, qids, k=1000 if k is None else k, threads=self.threads)
        return {
            qid: Ranking((hit.docid for hit in results), (float(hit.score) for hit in results))
            for qid, results in hits.items()
        }

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        stored: list[str | None] = getattr(self.searcher, 'texts', super().texts)(docids)
        return stored


def as_ranker(searcher: Any) -> Ranker:
    """A ranker as it is; any other searcher as a `PyseriniRanker`."""
    return searcher if isinstance(searcher, Ranker) else PyseriniRanker(searcher)


class HybridSearcher(Fusion):
    """A dense searcher and any number of sparse ones, as a `Fusion`.

    Its formulas are those of `fusion.fuse`. For Pyserini's own, give the same searchers to Pyserini's HybridSearcher.

    Parameters
    ----------
    dense_searcher : RepBertSearcher, or Pyserini's FaissSearcher
    sparse_searchers : one or several: LuceneSparseSearcher, or Pyserini's LuceneSearcher
    sparse_first : put the sparse rankings first, the dense one last: interleaving begins with them (RepBERT's Tables 3
        and 4 have both orders), and alpha weights the sparse ranking in 'interpolation'
    depth : hits asked of each searcher, and fused, unless a call gives k0; default: 1000, or k where that is more
    method, rrf_k, alpha, normalize : as in `fusion.fuse`
    """

    def __init__(
        self,
        dense_searcher: Ranker | Searcher,
        sparse_searchers: Ranker | Searcher | Sequence[Ranker | Searcher],
        method: str = FusionMethod.INTERLEAVE,
        sparse_first: bool = False,
        depth: int | None = None,
        rrf_k: float = RRF_K,
        alpha: float | Sequence[float] = ALPHA,
        normalize: str = Normalization.NONE,
    ) -> None:
        sparse = list(sparse_searchers) if isinstance(sparse_searchers, Sequence) else [sparse_searchers]
        if not sparse:
            raise InputError('no sparse searcher was given: give at least one')
        parts = [*sparse, dense_searcher] if sparse_first else [dense_searcher, *sparse]
        super().__init__(list(map(as_ranker, parts)), method, alpha, rrf_k, depth, normalize)

    def search(  # type: ignore[override]
        self, query: str, k0: int | None = None, k: int = 10, alpha: float | None = None
    ) -> list[Candidate]:
        """The k best of the fused ranking; the parameters come in the order of Pyserini's HybridSearcher.

        Parameters
        ----------
        k0 : hits asked of each searcher; default: `depth`
        alpha : instead of the searcher's own; methods without weights ignore it
        """
        return self.batch_search([query], ['0'], k0, k, 1, alpha)['0']

    def batch_search(  # type: ignore[override]
        self,
        queries: Sequence[str],
        q_ids: Sequence[str],
        k0: int | None = None,
        k: int = 10,
        threads: int = 1,
        alpha: float | None = None,
    ) -> dict[str, list[Candidate]]:
        """`search` for many queries: hits by qid, in the order of `q_ids`."""
        weights = self.alpha if alpha is None else alpha
        asked = self.with_settings(depth=k0 or self.depth or max(k, DEPTH), alpha=weights)
        return Ranker.batch_search(asked, queries, q_ids, k, threads)

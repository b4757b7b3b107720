"""`HybridSearcher`, with the interface of Pyserini's class of that name; any such searcher as a
`Ranker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import DEPTH, Fusion
from pyserini_repbert.fusion.fusing import pyserini_hybrid
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking, Run, check_question
from pyserini_repbert.trace import Trace

PYSERINI = 'pyserini'  # the method of Pyserini's HybridSearcher


class Searcher(Protocol):
    """A searcher with Pyserini's interface; a hit has `docid` and `score`."""

    def batch_search(
        self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int
    ) -> dict[str, list[Any]]:
        """Hits by qid."""


class PyseriniRanker(Ranker):
    """Ranks with a searcher of Pyserini's, whose hits have no text unless it has a method
    `texts`.
    """

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher
        self.name = type(searcher).__name__

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        texts = [topic.text for topic in topics]
        qids = [topic.qid for topic in topics]
        hits = self.searcher.batch_search(
            texts, qids, k=1000 if k is None else k, threads=self.threads
        )
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

    Parameters
    ----------
    dense_searcher : RepBertSearcher, or Pyserini's FaissSearcher
    sparse_searchers : one or several: LuceneSparseSearcher, or Pyserini's LuceneSearcher
    sparse_first : put the sparse rankings first, the dense one last: interleaving begins with them
        (RepBERT's Tables 3 and 4 have both orders), and alpha weights the sparse ranking in
        'interpolation'
    depth : hits asked of each searcher, and fused, unless a call gives k0; default: 1000, or k
        where that is more
    method, rrf_k, alpha, normalize : as in `fusion.fuse`; or method 'pyserini':
        `fusion.fusing.pyserini_hybrid`
    """

    normalization = weight_on_dense = False

    def __init__(
        self,
        dense_searcher: Ranker | Searcher,
        sparse_searchers: Ranker | Searcher | Sequence[Ranker | Searcher],
        method: str = FusionMethod.INTERLEAVE,
        sparse_first: bool = False,
        depth: int | None = None,
        rrf_k: float = RRF_K,
        alpha: float | Sequence[float] | None = None,
        normalize: str = Normalization.NONE,
    ) -> None:
        sparse = (
            list(sparse_searchers) if isinstance(sparse_searchers, Sequence) else [sparse_searchers]
        )
        theirs = method == PYSERINI
        if not sparse or (theirs and len(sparse) > 1):
            raise InputError(
                f'{len(sparse)} sparse searchers were given: give one, or several and another '
                f'method'
            )
        parts = (
            [*sparse, dense_searcher] if sparse_first and not theirs else [dense_searcher, *sparse]
        )
        formula = (
            (FusionMethod.INTERPOLATION, ALPHA)
            if theirs
            else (method, ALPHA if alpha is None else alpha)
        )
        super().__init__(list(map(as_ranker, parts)), *formula, rrf_k, depth, normalize)
        if theirs:
            self.method = PYSERINI
            self.alpha = 0.1 if alpha is None else alpha

    def search(  # type: ignore[override]
        self,
        query: str,
        k0: int | None = None,
        k: int = 10,
        alpha: float | None = None,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> list[Candidate]:
        """The k best of the fused ranking; the parameters come in the order of Pyserini's
        HybridSearcher.

        `k0` hits are asked of each searcher (default: `depth`). `alpha` replaces the searcher's
        own; methods without weights ignore it.
        normalization, weight_on_dense : of method 'pyserini', see `fusion.fusing.pyserini_hybrid`
        """
        check_question(query)
        run = self.batch_search([query], ['0'], k0, k, 1, alpha, normalization, weight_on_dense)
        return run['0']

    def batch_search(  # type: ignore[override]
        self,
        queries: Sequence[str],
        q_ids: Sequence[str],
        k0: int | None = None,
        k: int = 10,
        threads: int = 1,
        alpha: float | None = None,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> dict[str, list[Candidate]]:
        """`search` for many queries: hits by qid, in the order of `q_ids`."""
        weights = self.alpha if alpha is None else alpha
        asked = self.with_settings(depth=k0 or self.depth or max(k, DEPTH), alpha=weights)
        asked.normalization = normalization
        asked.weight_on_dense = weight_on_dense
        return Ranker.batch_search(asked, queries, q_ids, k, threads)

    def fused(self, runs: Sequence[Run], k: int | None) -> Run:
        """As of `Fusion`, or by Pyserini's formula."""
        if self.method != PYSERINI:
            return super().fused(runs, k)
        return pyserini_hybrid(runs, k, self.alpha, self.normalization, self.weight_on_dense)  # type: ignore[arg-type]

"""`HybridSearcher`, with the interface of Pyserini's class of that name.

`as_ranker` turns any searcher with Pyserini's interface into a `Ranker`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.fusing import pyserini_hybrid
from pyserini_repbert.fusion.methods import RRF_K, FusionMethod, Normalization
from pyserini_repbert.fusion.settings import DEPTH, FusionSettings
from pyserini_repbert.ranking import (
    Candidate,
    Query,
    Ranker,
    Ranking,
    Run,
    Searcher,
    check_question,
)
from pyserini_repbert.trace import Trace

# The method of Pyserini's HybridSearcher, and its own alpha.
PYSERINI = 'pyserini'
_PYSERINI_ALPHA = 0.1


class PyseriniSearcher(Protocol):
    """A searcher with Pyserini's interface; a hit has `docid` and `score`."""

    def batch_search(
        self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int
    ) -> dict[str, list[Any]]:
        """Hits by qid.

        Parameters
        ----------
        queries, qids : as many of each
        k : hits of each query
        threads : queries that are answered at a time
        """


class PyseriniRanker(Searcher, recorded_as='PyseriniRanker'):
    """Ranks with a searcher of Pyserini's.

    Its hits have no text, unless the searcher has a method `texts`.
    """

    def __init__(self, searcher: PyseriniSearcher) -> None:
        self.searcher = searcher
        self.name = type(searcher).__name__

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        texts = [topic.text for topic in topics]
        qids = [topic.qid for topic in topics]
        depth = DEPTH if k is None else k
        hits = self.searcher.batch_search(texts, qids, k=depth, threads=self.threads)
        rankings: Run = {}
        for qid, results in hits.items():
            scores = [float(hit.score) for hit in results]
            rankings[qid] = Ranking([hit.docid for hit in results], scores)
        return rankings

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        stored: list[str | None] = getattr(self.searcher, 'texts', super().texts)(docids)
        return stored


def as_ranker(searcher: Any) -> Ranker:
    """A ranker unchanged; any other searcher as a `PyseriniRanker`."""
    if isinstance(searcher, Ranker):
        return searcher
    return PyseriniRanker(searcher)


class HybridSearcher(Fusion, recorded_as='HybridSearcher'):
    """A dense searcher and any number of sparse ones, as a `Fusion`.

    Parameters
    ----------
    dense_searcher : DenseSearcher, or Pyserini's FaissSearcher
    sparse_searchers : one or several: LuceneSparseSearcher, or Pyserini's LuceneSearcher
    sparse_first : put the sparse rankings first, the dense one last: interleaving begins with them
        (RepBERT's Tables 3 and 4 have both orders), and alpha weights the sparse ranking in
        'interpolation'
    depth : hits asked of each searcher, and fused, unless a call gives k0; default: 1000, or k
        if that is more
    method, rrf_k, alpha, normalize : as in `fusion.fuse`; or method 'pyserini':
        `fusion.fusing.pyserini_hybrid`

    Attributes
    ----------
    pyserini_alpha : the weight of method 'pyserini'; None for the other methods
    normalization, weight_on_dense : of method 'pyserini', as a call of `batch_search` says
    """

    pyserini_alpha: float | None
    normalization: bool = False
    weight_on_dense: bool = False

    def __init__(
        self,
        dense_searcher: Ranker | PyseriniSearcher,
        sparse_searchers: Ranker | PyseriniSearcher | Sequence[Ranker | PyseriniSearcher],
        method: str = FusionMethod.INTERLEAVE,
        sparse_first: bool = False,
        depth: int | None = None,
        rrf_k: float = RRF_K,
        alpha: float | Sequence[float] | None = None,
        normalize: str = Normalization.MINMAX,
    ) -> None:
        if isinstance(sparse_searchers, Sequence):
            sparse = list(sparse_searchers)
        else:
            sparse = [sparse_searchers]
        is_pyserini = method == PYSERINI
        if not sparse or (is_pyserini and len(sparse) > 1):
            raise InputError(
                f'{len(sparse)} sparse searchers were given: give one, or another method '
                'for several'
            )
        parts = [dense_searcher, *sparse]
        if sparse_first and not is_pyserini:
            parts = [*sparse, dense_searcher]
        rankers = [as_ranker(part) for part in parts]
        if is_pyserini:
            # `Fusion` does not know this method, which `fused` adds. It needs as many hits of each
            # searcher as interpolation does.
            super().__init__(rankers, FusionSettings(FusionMethod.INTERPOLATION, depth=depth))
            self.pyserini_alpha = _PYSERINI_ALPHA if alpha is None else cast(float, alpha)
        else:
            settings = FusionSettings(method, rrf_k=rrf_k, normalize=normalize, depth=depth)
            super().__init__(rankers, settings.changed(alpha))
            self.pyserini_alpha = None

    def search(  # type: ignore[override]
        self,
        query: str,
        k0: int | None = None,
        k: int = 10,
        alpha: float | None = None,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> list[Candidate]:
        """The k best of the fused ranking; parameters are in the order of Pyserini's class.

        Parameters
        ----------
        query : its text
        k0 : hits asked of each searcher; default: `depth`
        k : hits that are returned
        alpha : replaces this searcher's; methods without weights ignore it
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
        """`search` for many queries: hits by qid, in the order of `q_ids`.

        Parameters
        ----------
        queries, q_ids : as many of each
        threads : queries that are answered at a time
        k0, k, alpha, normalization, weight_on_dense : as in `search`
        """
        depth = k0 or self.settings.depth or max(k, DEPTH)
        asked = self.with_settings(settings=self.settings.changed(depth=depth))
        if alpha is not None and self.pyserini_alpha is not None:
            asked.pyserini_alpha = alpha
        elif alpha is not None and self.settings.method is FusionMethod.INTERPOLATION:
            asked.settings = asked.settings.changed(alpha)
        asked.normalization = normalization
        asked.weight_on_dense = weight_on_dense
        return Searcher.batch_search(asked, queries, q_ids, k, threads)

    def fused(self, topics: Sequence[Query], runs: Sequence[Run], k: int | None) -> Run:
        """As in `Fusion`, or by Pyserini's formula."""
        if self.pyserini_alpha is None:
            return super().fused(topics, runs, k)
        return pyserini_hybrid(
            runs, k, self.pyserini_alpha, self.normalization, self.weight_on_dense
        )

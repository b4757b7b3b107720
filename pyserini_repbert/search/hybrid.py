"""`HybridSearcher`, with the interface of Pyserini's class of that name; any such searcher as a `Ranker`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import DEPTH, Fusion
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking, Run, by_score, topics_of
from pyserini_repbert.trace import Trace

PYSERINI = 'pyserini'  # the formula of Pyserini's HybridSearcher, which is not that of `interpolation`
_PYSERINI_ALPHA = 0.1  # its default


class Searcher(Protocol):
    """A searcher with Pyserini's interface; a hit has `docid` and `score`."""

    def batch_search(self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> dict[str, list[Any]]:
        """Hits by qid."""


class PyseriniRanker(Ranker):
    """Ranks with a searcher of Pyserini's, whose hits have no text unless it has a method `texts`."""

    def __init__(self, searcher: Searcher, name: str = '') -> None:
        self.searcher, self.name = searcher, name or type(searcher).__name__

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

    Parameters
    ----------
    dense_searcher : RepBertSearcher, or Pyserini's FaissSearcher
    sparse_searchers : one or several: LuceneSparseSearcher, or Pyserini's LuceneSearcher
    method : 'interleave', 'rrf' or 'interpolation', each as in `fusion.fuse`; or 'pyserini', the formula of Pyserini's
        HybridSearcher for one sparse searcher: alpha times the sparse score plus the dense score, where a document that
        a ranking lacks has that ranking's lowest score
    sparse_first : put the sparse rankings first, the dense one last: interleaving begins with them (RepBERT's Tables 3
        and 4 have both orders), and alpha weights the sparse ranking in 'interpolation'
    depth : hits asked of each searcher, and fused, unless a call gives k0; default: 1000, or k where that is more
    rrf_k : the constant of reciprocal rank fusion
    alpha : 'interpolation': the first ranking's weight, 0.5 by default, or a weight for each ranking; 'pyserini': the
        sparse score's, 0.1 by default
    normalize : 'interpolation': what is done to each ranking's scores first, as in `fusion.fuse`
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
        sparse = list(sparse_searchers) if isinstance(sparse_searchers, Sequence) else [sparse_searchers]
        if method not in [*FusionMethod, PYSERINI]:
            expected = ', '.join([*FusionMethod, PYSERINI])
            raise InputError(f"fusion method '{method}' is unknown: expected one of {expected}")
        if not sparse or (method == PYSERINI and len(sparse) != 1):
            expected = 'exactly one' if method == PYSERINI else 'at least one'
            raise InputError(f"{len(sparse)} sparse searchers were given, '{method}' takes {expected}")
        dense, others = as_ranker(dense_searcher), [as_ranker(searcher) for searcher in sparse]
        parts = [*others, dense] if sparse_first and method != PYSERINI else [dense, *others]
        if method == PYSERINI:
            super().__init__(parts, depth=depth)
            self.method, self.alpha = PYSERINI, _finite(_PYSERINI_ALPHA if alpha is None else alpha)
        else:
            super().__init__(parts, method, ALPHA if alpha is None else alpha, rrf_k, depth, normalize)

    def search(  # type: ignore[override]
        self,
        query: str,
        k0: int | None = None,
        k: int = 10,
        alpha: float | None = None,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> list[Candidate]:
        """The k best of the fused ranking; the parameters come in the order of Pyserini's HybridSearcher.

        Parameters
        ----------
        k0 : hits asked of each searcher; default: `depth`
        alpha : instead of the searcher's own; methods without weights ignore it
        normalization, weight_on_dense : as in Pyserini, with method 'pyserini' only: scale each ranking's scores to
            [-0.5, 0.5]; weight the dense score by alpha instead of the sparse one
        """
        return self.batch_search([query], ['0'], k0, k, 1, alpha, normalization, weight_on_dense)['0']

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
        if self.method != PYSERINI and (normalization or weight_on_dense):
            raise InputError(f"normalization and weight_on_dense are of method '{PYSERINI}', not of '{self.method}'")
        asked = self.with_settings(
            depth=k0 or self.depth or max(k, DEPTH),
            threads=threads,
            alpha=self.alpha if alpha is None else _finite(alpha),
            normalization=normalization,
            weight_on_dense=weight_on_dense,
        )
        return {qid: list(ranking) for qid, ranking in asked.rank(topics_of(queries, q_ids), None, k).items()}

    def fused(self, runs: Sequence[Run], k: int | None) -> Run:
        """As of `Fusion`, by its own formula for 'pyserini'."""
        if self.method != PYSERINI:
            return super().fused(runs, k)
        dense, sparse = runs
        settings = (_finite(self.alpha), self.normalization, self.weight_on_dense)
        return {qid: _pyserinis(dense[qid], sparse[qid], k, *settings) for qid in dense}


def _finite(alpha: float | Sequence[float]) -> float:
    if isinstance(alpha, Sequence) or not math.isfinite(alpha):
        raise InputError(f'alpha is {alpha}, a number was expected')
    return alpha


def _pyserinis(
    dense: Ranking, sparse: Ranking, k: int | None, alpha: float, normalization: bool, weight_on_dense: bool
) -> Ranking:
    """The k best by Pyserini's hybrid score; normalised, scores whose range is 0 become 0."""
    columns = []
    for ranked in (dense, sparse):
        scores = dict(zip(ranked.docids, ranked.scores, strict=True))
        low, high = min(ranked.scores, default=0.0), max(ranked.scores, default=1.0)
        if normalization:
            middle, width = (low + high) / 2, (high - low) or 1.0
            scores = {docid: (score - middle) / width for docid, score in scores.items()}
            low = (low - middle) / width
        columns.append((scores, low))
    (of_dense, lowest_dense), (of_sparse, lowest_sparse) = columns
    by_dense, by_sparse = (alpha, 1.0) if weight_on_dense else (1.0, alpha)
    total = {
        docid: by_dense * of_dense.get(docid, lowest_dense) + by_sparse * of_sparse.get(docid, lowest_sparse)
        for docid in of_dense | of_sparse
    }
    return by_score(list(total), list(total.values()))[:k]

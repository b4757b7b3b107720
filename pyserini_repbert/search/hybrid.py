"""Dense and sparse searchers run in parallel, their rankings fused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, combiner, fuse
from pyserini_repbert.ranking import Candidate, Ranking, Run, by_score, hits_of

DEPTH = 1000  # RepBERT eq. 6 merges two lists of 1000
PYSERINI = 'pyserini'  # the formula of Pyserini's HybridSearcher, which is not that of `interpolation`
_PYSERINI_ALPHA = 0.1  # its default


class Searcher(Protocol):
    """A searcher with Pyserini's interface."""

    def batch_search(self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> dict[str, list[Any]]:
        """Hits by qid."""


class HybridSearcher:
    """A dense searcher and any number of sparse ones, run at the same time: queries are encoded while Lucene searches.

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
    alpha : 'interpolation': the first ranking's weight, 0.5 by default; 'pyserini': the sparse score's, 0.1 by default

    Raises
    ------
    InputError
        for an unknown method, a number of searchers that it does not take, an alpha or `rrf_k` outside its range
    """

    def __init__(
        self,
        dense_searcher: Searcher,
        sparse_searchers: Searcher | Sequence[Searcher],
        method: str = FusionMethod.INTERLEAVE,
        sparse_first: bool = False,
        depth: int | None = None,
        rrf_k: float = RRF_K,
        alpha: float | None = None,
    ) -> None:
        sparse = list(sparse_searchers) if isinstance(sparse_searchers, Sequence) else [sparse_searchers]
        if method not in [*FusionMethod, PYSERINI]:
            expected = ', '.join([*FusionMethod, PYSERINI])
            raise InputError(f"fusion method '{method}' is unknown: expected one of {expected}")
        of_two = method in (FusionMethod.INTERPOLATION, PYSERINI)
        if not sparse or (of_two and len(sparse) != 1):
            expected = 'exactly one' if of_two else 'at least one'
            raise InputError(f"{len(sparse)} sparse searchers were given, '{method}' takes {expected}")
        if alpha is None:
            alpha = _PYSERINI_ALPHA if method == PYSERINI else ALPHA
        if method != PYSERINI:
            combiner(1 + len(sparse), method, None, alpha, rrf_k)  # refuses settings before anything is searched
        self.dense_searcher, self.sparse_searchers = dense_searcher, sparse
        self.method, self.sparse_first, self.depth = str(method), sparse_first, depth
        self.rrf_k, self.alpha = rrf_k, _finite(alpha)

    def search(
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

        Raises
        ------
        InputError
            for an alpha outside its range, `normalization` or `weight_on_dense` with another method
        """
        return self.batch_search([query], ['0'], k0, k, 1, alpha, normalization, weight_on_dense)['0']

    def batch_search(
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
        if k0 is None:
            k0 = max(k, DEPTH) if self.depth is None else self.depth
        runs = self.runs(queries, q_ids, k0, threads)
        return hits_of(self.fused(runs, k, alpha, normalization, weight_on_dense))

    def runs(self, queries: Sequence[str], q_ids: Sequence[str], k0: int, threads: int = 1) -> list[Run]:
        """Each searcher's own run, the dense one's first, searched at the same time."""
        searchers = [self.dense_searcher, *self.sparse_searchers]
        with ThreadPoolExecutor(len(searchers)) as pool:
            waiting = [pool.submit(run_of, searcher, queries, q_ids, k0, threads) for searcher in searchers]
            return [found.result() for found in waiting]

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first searcher that stores any, the dense one before the others."""
        return stored_texts([self.dense_searcher, *self.sparse_searchers], docids)

    def fused(
        self,
        runs: Sequence[Run],
        k: int | None,
        alpha: float | None = None,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> Run:
        """The fusion of the runs that `runs` returned, k deep; the other parameters are those of `search`."""
        weight = _finite(self.alpha if alpha is None else alpha)
        if self.method == PYSERINI:
            dense, sparse = runs
            return {
                qid: _pyserinis(dense[qid], sparse[qid], k, weight, normalization, weight_on_dense) for qid in dense
            }
        if normalization or weight_on_dense:
            raise InputError(f"normalization and weight_on_dense are of method '{PYSERINI}', not of '{self.method}'")
        ordered = [*runs[1:], runs[0]] if self.sparse_first else runs
        return fuse(ordered, self.method, k, weight, self.rrf_k)


def _finite(alpha: float) -> float:
    if not math.isfinite(alpha):
        raise InputError(f'alpha is {alpha}, a number was expected')
    return alpha


def run_of(searcher: Searcher, queries: Sequence[str], qids: Sequence[str], k: int, threads: int = 1) -> Run:
    """The run of a searcher, ours or Pyserini's, with a ranking for every qid."""
    own = getattr(searcher, 'rankings', None)
    if own is not None:
        run: Run = own(queries, qids, k, threads)
        return run
    found = searcher.batch_search(list(queries), list(qids), k=k, threads=threads)
    lists = {qid: found.get(qid, []) for qid in qids}
    return {
        qid: Ranking((hit.docid for hit in hits), (float(hit.score) for hit in hits)) for qid, hits in lists.items()
    }


def stored_texts(searchers: Sequence[Any], docids: Sequence[str]) -> list[str | None]:
    """Passage texts from the first searcher that stores any; Pyserini's searchers give none."""
    found = (searcher.texts(docids) for searcher in searchers if hasattr(searcher, 'texts'))
    return next(filter(any, found), [None] * len(docids))


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

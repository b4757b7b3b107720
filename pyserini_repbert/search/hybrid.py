"""Dense and sparse searchers at once, their rankings fused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import FusionMethod, fuse
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.runs import RankedList, Run

DEPTH = 1000  # RepBERT eq. 6 merges two lists of 1000


class Hit(Protocol):
    """A hit under Pyserini's contract."""

    docid: str
    score: float


class Searcher(Protocol):
    """A searcher under Pyserini's contract."""

    def batch_search(self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> dict[str, list[Any]]:
        """Hits by qid."""


class HybridSearcher:
    """A dense and any number of sparse searchers, run at the same time: the query is encoded while Lucene works.

    Parameters
    ----------
    dense_searcher : RepBertSearcher, or Pyserini's FaissSearcher
    sparse_searchers : one or several: LuceneSparseSearcher, or Pyserini's LuceneSearcher
    method : 'interleave' (RepBERT eq. 6), 'rrf', or 'interpolation' (Pyserini's hybrid: sparse score weighted by alpha
        plus dense score; two searchers)
    sparse_first : whether interleaving begins with the (first) sparse ranking; RepBERT's Tables 3 and 4 have both
    depth : hits asked of each searcher, unless a call says k0
    rrf_k : the constant of reciprocal rank fusion
    """

    def __init__(
        self,
        dense_searcher: Searcher,
        sparse_searchers: Searcher | Sequence[Searcher],
        method: str = FusionMethod.INTERLEAVE,
        sparse_first: bool = False,
        depth: int = DEPTH,
        rrf_k: float = 60,
    ) -> None:
        sparse = list(sparse_searchers) if isinstance(sparse_searchers, Sequence) else [sparse_searchers]
        self.method = FusionMethod(method)
        if not sparse or (self.method is FusionMethod.INTERPOLATION and len(sparse) != 1):
            expected = 'exactly one' if self.method is FusionMethod.INTERPOLATION else 'at least one'
            raise InputError(f"{len(sparse)} sparse searchers were given, '{method}' takes {expected}")
        self.dense_searcher, self.sparse_searchers = dense_searcher, sparse
        self.sparse_first, self.depth, self.rrf_k = sparse_first, depth, rrf_k

    def search(
        self,
        query: str,
        k0: int | None = None,
        k: int = 10,
        alpha: float = 0.1,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> list[Candidate]:
        """The k best of the fused ranking.

        Parameters
        ----------
        k0 : hits asked of each searcher; by default the larger of k and `depth`
        alpha, normalization, weight_on_dense : of method 'interpolation' only, as in Pyserini's HybridSearcher
        """
        return self.batch_search([query], ['0'], k0, k, 1, alpha, normalization, weight_on_dense)['0']

    def batch_search(
        self,
        queries: Sequence[str],
        q_ids: Sequence[str],
        k0: int | None = None,
        k: int = 10,
        threads: int = 1,
        alpha: float = 0.1,
        normalization: bool = False,
        weight_on_dense: bool = False,
    ) -> dict[str, list[Candidate]]:
        """`search` for many queries, by qid, in the order of `q_ids`."""
        runs = self.rankings(queries, q_ids, k0 if k0 is not None else max(k, self.depth), threads)
        if self.method is FusionMethod.INTERPOLATION:
            dense, sparse = runs
            fused = {qid: _weighted(dense[qid], sparse[qid], k, alpha, normalization, weight_on_dense) for qid in dense}
        else:
            ordered = [*runs[1:], runs[0]] if self.sparse_first else runs
            fused = fuse(ordered, self.method, k, rrf_k=self.rrf_k)
        return {
            qid: [Candidate(docid, score) for docid, score in zip(*ranked, strict=True)]
            for qid, ranked in fused.items()
        }

    def rankings(self, queries: Sequence[str], q_ids: Sequence[str], k0: int, threads: int = 1) -> list[Run]:
        """Each searcher's own run, the dense one's first, searched at the same time."""
        searchers = [self.dense_searcher, *self.sparse_searchers]
        with ThreadPoolExecutor(len(searchers)) as pool:
            waiting = [pool.submit(_run, searcher, queries, q_ids, k0, threads) for searcher in searchers]
            return [found.result() for found in waiting]


def _run(searcher: Searcher, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> Run:
    found = searcher.batch_search(list(queries), list(qids), k, threads)
    return {
        qid: RankedList([hit.docid for hit in found[qid]], [float(hit.score) for hit in found[qid]])
        if qid in found
        else RankedList([], [])
        for qid in qids
    }


def _weighted(
    dense: RankedList, sparse: RankedList, k: int, alpha: float, normalization: bool, weight_on_dense: bool
) -> RankedList:
    """Pyserini's hybrid score: a document that a ranking lacks has the ranking's lowest score there."""
    columns = []
    for ranked in (dense, sparse):
        scores = dict(zip(*ranked, strict=True))
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
    order = sorted(total, key=lambda docid: (-total[docid], docid))[:k]
    return RankedList(order, [total[docid] for docid in order])

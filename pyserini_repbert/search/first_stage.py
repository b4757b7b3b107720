"""The first stage: one searcher, or several whose rankings are fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod
from pyserini_repbert.lucene.sparse_settings import default_settings
from pyserini_repbert.names.sparse import find_sparse
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.search.hybrid import DEPTH, HybridSearcher, run_of, stored_texts

if TYPE_CHECKING:
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
    from pyserini_repbert.search.impact import EpicImpactSearcher


@dataclass(frozen=True)
class FirstStage:
    """The searchers of a first stage, in the order in which their rankings are fused.

    Attributes
    ----------
    names : one for each searcher: 'repbert-demo', 'bm25', …
    searchers : one or several
    method : how their rankings are fused
    alpha, rrf_k : as in `fusion.fuse`
    depth : hits of each ranking that are fused; default: as in `fused_depth`
    remove_duplicates : keep only the best hit of each docid in each ranking; Lucene indexes that others built may have
        a docid twice
    """

    names: tuple[str, ...]
    searchers: tuple[Any, ...]
    method: FusionMethod = FusionMethod.INTERLEAVE
    alpha: float = ALPHA
    rrf_k: float = RRF_K
    depth: int | None = None
    remove_duplicates: bool = False

    def run(self, topics: Sequence[Query], k: int, threads: int = 1) -> tuple[Run, list[Run]]:
        """The fused run, k deep, and each searcher's own run; several searchers work at the same time."""
        texts, qids = [query.text for query in topics], [query.qid for query in topics]
        first, *others = self.searchers
        if not others:
            found = self._distinct(run_of(first, texts, qids, k, threads))
            return found, [found]
        hybrid = HybridSearcher(first, others, self.method, rrf_k=self.rrf_k, alpha=self.alpha)
        depth = self.depth or fused_depth(self.method, k)
        runs = [self._distinct(run) for run in hybrid.runs(texts, qids, depth, threads)]
        return hybrid.fused(runs, k), runs

    def _distinct(self, run: Run) -> Run:
        return {qid: ranking.distinct() for qid, ranking in run.items()} if self.remove_duplicates else run

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts from the first searcher that stores any."""
        return stored_texts(self.searchers, docids)

    def with_texts(self, ranking: Ranking) -> Ranking:
        """A ranking with its passages' texts, where a searcher stores any."""
        return ranking.with_texts(dict(zip(ranking.docids, self.texts(ranking.docids), strict=True)))

    def encoders(self) -> list[Any]:
        """The query encoders of the searchers that have one."""
        found = [getattr(searcher, 'query_encoder', None) for searcher in self.searchers]
        return [getattr(encoder, 'encoder', encoder) for encoder in found if encoder is not None]


def fused_depth(method: FusionMethod, k: int) -> int:
    """The default number of hits fused from each ranking for k fused ones: k for 'interleave', else at least `DEPTH`.

    The first k of interleaved rankings depend on the first k of each only; with other methods, lower ranks count.
    """
    return k if method is FusionMethod.INTERLEAVE else max(k, DEPTH)


def open_sparse(
    spec: str,
    index: str | None = None,
    on_build: Callable[[Path], object] | None = None,
    download: bool = False,
    device: str = 'cpu',
    k1: float | None = None,
    b: float | None = None,
) -> LuceneSparseSearcher | EpicImpactSearcher:
    """Open a sparse searcher; the first four parameters, and the errors, are those of `names.sparse.find_sparse`.

    Parameters
    ----------
    device : where queries are encoded for an index of EPIC's impacts
    k1, b : of BM25, instead of those of the technique or of the index's own record

    Raises
    ------
    InputError
        where k1 or b is given for anything but BM25
    """
    found = find_sparse(spec, index, on_build, download)
    changes = [name for name, value in (('k1', k1), ('b', b)) if value is not None]
    if changes and (found.of_impacts or (found.settings is not None and found.settings.model != 'bm25')):
        raise InputError(f"'{spec}' has no {' and '.join(changes)}: they are BM25's", parameters=tuple(changes))
    if found.of_impacts:
        from pyserini_repbert.search.impact import EpicImpactSearcher

        return EpicImpactSearcher(found.folder, device=device)
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    settings = found.settings
    if changes:
        known = settings or default_settings(found.folder)
        settings = replace(known, k1=known.k1 if k1 is None else k1, b=known.b if b is None else b)
    return LuceneSparseSearcher(found.folder, settings)

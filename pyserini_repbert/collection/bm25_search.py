"""BM25 of a collection's documents, and of those among them that a filter lets through."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.lucene.languages import language_of
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.ranking import (
    NO_HITS,
    Query,
    QueryRewriting,
    Ranking,
    Reason,
    ReasonKind,
    Run,
    Searcher,
)
from pyserini_repbert.trace import Trace

# Of a smaller share of allowed documents, Lucene gets their ids; else hits are left out afterwards.
_FEW = 1 / 2
# How much deeper each further search goes.
_DEEPER = 4
# Of Anserini's scores, which are rounded. Those that were alike differ by 1e-6, as far as float32
# tells that.
_DECIMALS = 4
_MOST_BETWEEN_TIES = 1e-5


class Bm25DocumentSearcher(LuceneSparseSearcher, recorded_as='DocumentBm25'):
    """BM25 of a generation's documents.

    Parameters
    ----------
    generation : open, with a Lucene index, until the searcher is not used any more
    settings : how it is searched
    """

    def __init__(self, generation: Generation, settings: SparseSettings) -> None:
        super().__init__(str(generation.lucene_folder), settings)
        self.generation = generation

    def within(self, wanted: DocumentFilter) -> FilteredBm25:
        """The same search among the documents that a filter lets through."""
        return FilteredBm25(self, self.generation, wanted.mask(self.generation))

    @property
    def gives_document_scores(self) -> bool:
        return True

    def document_scores(self, topic: Query, docids: Sequence[str], hits: Ranking) -> list[float]:
        """As in `Ranker`, without what Anserini takes off scores that are alike."""
        score_of = _scores_before_ties(hits)
        missing = [docid for docid in docids if docid not in score_of]
        if missing:
            others = self.among(missing).rank([topic], None, len(missing))[topic.qid]
            score_of |= _scores_before_ties(others)
        return [score_of.get(docid, 0.0) for docid in docids]

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """The words of a question with what they add to the score of each document, by docid.

        A document without any of them has none.
        """
        reasons: dict[str, tuple[Reason, ...]] = {}
        for docid, words in self.word_weights(query, docids).items():
            reasons[docid] = (Reason(ReasonKind.WORDS, self.name, tuple(words)),)
        return reasons


class FilteredBm25(Searcher, recorded_as='FilteredBm25'):
    """BM25's hits among the allowed documents: k of them, if there are as many.

    Parameters
    ----------
    searcher : of a generation's Lucene index
    generation : knows the numbers of documents
    documents : by number, whether each is allowed, bool (numbers,)
    """

    def __init__(
        self, searcher: Bm25DocumentSearcher, generation: Generation, documents: NDArray[np.bool_]
    ) -> None:
        self._generation = generation
        self._unfiltered = searcher
        self._documents = documents
        self._n_allowed = int(np.count_nonzero(documents))
        self._has_few = self._n_allowed < _FEW * searcher.size
        self._searcher = searcher
        if self._has_few and self._n_allowed:
            self._searcher = searcher.among(generation.docids(np.flatnonzero(documents)))
        self.name = searcher.name
        self.language = language_of(searcher)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        if not self._n_allowed:
            return {}
        searcher = self._searcher.with_settings(threads=self.threads)
        if self._has_few:
            return searcher.rank(topics, None, k)
        wanted = searcher.size if k is None else min(k, self._n_allowed)
        # As deep as the share of allowed documents lets expect, and some more.
        depth = 10 + int(1.2 * wanted * searcher.size / self._n_allowed)
        found: Run = {}
        waiting = list(topics)
        while waiting:
            depth = min(depth, searcher.size)
            hits = searcher.rank(waiting, None, depth)
            later = []
            for topic in waiting:
                ranking = hits.get(topic.qid, NO_HITS)
                kept = self._kept(ranking)
                if len(kept) >= wanted or len(ranking) < depth or depth == searcher.size:
                    found[topic.qid] = kept[:wanted]
                else:
                    later.append(topic)
            waiting = later
            depth *= _DEEPER
        return found

    def by_documents(self) -> Self:
        return self.with_settings(
            _searcher=self._searcher.by_documents(), _unfiltered=self._unfiltered.by_documents()
        )

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        if not rewriting.rewrites_words:
            return self
        return self.with_settings(
            _searcher=self._searcher.with_rewriting(rewriting),
            _unfiltered=self._unfiltered.with_rewriting(rewriting),
        )

    @property
    def gives_document_scores(self) -> bool:
        return True

    def document_scores(self, topic: Query, docids: Sequence[str], hits: Ranking) -> list[float]:
        return self._unfiltered.document_scores(topic, docids, hits)

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        return self._unfiltered.reasons(query, docids)

    def holds(self, docid: str) -> bool:
        return self._searcher.holds(docid)

    def _kept(self, ranking: Ranking) -> Ranking:
        is_allowed = self._generation.are_among(self._documents, ranking.docids)
        rows = np.flatnonzero(is_allowed).tolist()
        return ranking.select_rows(rows, [ranking.scores[row] for row in rows])

    def warnings(self, query: str) -> list[str]:
        return self._searcher.warnings(query)

    def close(self) -> None:
        self._searcher.close()


def _scores_before_ties(ranking: Ranking) -> dict[str, float]:
    """The scores that Anserini gives documents by themselves, by docid.

    It rounds to four decimals, and takes 1e-6 off each score that equals the one before, which
    depends on what else is found.
    """
    scores: dict[str, float] = {}
    before = inf
    score = inf
    for docid, lowered in zip(ranking.docids, ranking.scores, strict=True):
        if before - lowered > _MOST_BETWEEN_TIES:
            score = round(lowered, _DECIMALS)
        scores[docid] = score
        before = lowered
    return scores

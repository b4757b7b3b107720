"""BM25 of a collection's documents, and of those among them that a filter lets through."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.lucene.frequent_words import without_frequent_words
from pyserini_repbert.lucene.guessing import are_different, question_language
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
    Unjudged,
)
from pyserini_repbert.trace import Trace

# If a smaller share of documents is allowed, Lucene gets their ids. Otherwise hits are left out
# afterwards.
_FEW = 1 / 2
# How much deeper each further search goes.
_DEEPER = 4
# Anserini rounds scores to so many decimals. It lowers a score that is not further below the one
# before, by 1e-6 for each of those before.
_DECIMALS = 4
_TIES_WITHIN = np.float32(1e-4)
_OFF_EACH_TIE = 1e-6
# Lowered scores that tie are no further apart: the first of them is lowered by 1e-6.
_MAY_TIE_WITHIN = 2e-4


class Bm25DocumentSearcher(LuceneSparseSearcher, recorded_as='DocumentBm25'):
    """BM25 of a generation's documents, for which frequent words of a question count for less.

    Questions are full of words such as 'which'. The few documents that have many of them would come
    first. A frequent word of the question's language counts `word_share`, and any other word 1
    (regressions/studies/frequent_words.py). Without frequent words, scores are BM25's.

    Parameters
    ----------
    generation : open, with a Lucene index, until the searcher is no longer used
    settings : how it is searched
    """

    # A power of two, which no rounding changes.
    word_share = 1 / 4

    def __init__(self, generation: Generation, settings: SparseSettings) -> None:
        super().__init__(str(generation.lucene_folder), settings)
        self.word_forms = WordForms.UNITED
        self.generation = generation

    def within(self, wanted: DocumentFilter) -> FilteredBm25:
        """The same search among the documents that a filter lets through."""
        return FilteredBm25(self, self.generation, wanted.mask(self.generation))

    def _searched_text(self, query: str) -> str:
        """A question, and its other words than frequent ones as often as makes them count 1."""
        text = super()._searched_text(query)
        rest = without_frequent_words(text, self.language)
        n_repeats = round(1 / self.word_share) - 1
        return ' '.join([text, *[rest] * n_repeats])

    @property
    def gives_document_scores(self) -> bool:
        return True

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        """As in `Ranker`, without what Anserini takes off scores that are alike."""
        found = set(hits.docids)
        missing = [docid for docid in docids if docid not in found]
        score_of: dict[str, float] = {}
        if len(missing) < len(docids):
            score_of = dict(zip(hits.docids, _scores_before_ties(hits.scores), strict=True))
        if missing:
            others = self.among(missing).rank([topic], None, len(missing))[topic.qid]
            scores = _scores_before_ties(others.scores)
            score_of |= dict(zip(others.docids, scores, strict=True))
        return [score_of.get(docid) for docid in docids]

    def unjudged(self, topic: Query) -> Unjudged | None:
        """As in `Ranker`: documents whose language is not the question's, if both are known."""
        languages = self.generation.languages
        if not languages:
            return None
        if self._document_queries is None:
            own = question_language(topic.text)
        else:
            own = self.generation.languages_of([topic.text]).get(topic.text)
        if own is None:
            return None
        others = frozenset(other for other in languages if are_different(own, other))
        return partial(self.generation.in_languages, others) if others else None

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """The words of a question, with what each adds to the score of a document, by docid.

        A document without any of them has none.
        """
        reasons: dict[str, tuple[Reason, ...]] = {
            docid: (Reason(ReasonKind.WORDS, self.name, tuple(words)),)
            for docid, words in self.word_weights(query, docids).items()
        }
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

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        return self._unfiltered.document_scores(topic, docids, hits)

    def unjudged(self, topic: Query) -> Unjudged | None:
        return self._unfiltered.unjudged(topic)

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        return self._unfiltered.reasons(query, docids)

    def holds(self, docid: str) -> bool:
        return self._searcher.holds(docid)

    def _kept(self, ranking: Ranking) -> Ranking:
        """The allowed hits, with the scores that they have if no other hits exist."""
        is_allowed = self._generation.are_among(self._documents, ranking.docids)
        rows = np.flatnonzero(is_allowed).tolist()
        scores = _scores_before_ties(ranking.scores)
        return ranking.select_rows(rows, _scores_with_ties([scores[row] for row in rows]))

    def warnings(self, query: str) -> list[str]:
        return self._searcher.warnings(query)

    def close(self) -> None:
        self._searcher.close()


def _scores_before_ties(scores: Sequence[float]) -> list[float]:
    """The scores that Anserini gives single documents, computed from the scores of a whole ranking.

    What `ScoreTiesAdjusterReranker` takes off depends on what else is found.
    """
    rounded: list[float] = np.round(scores, _DECIMALS).tolist()
    may_tie = 1 + np.flatnonzero(-np.diff(scores) < _MAY_TIE_WITHIN)
    n_before = 0
    last_row = 0
    for row in may_tie.tolist():
        n_before = n_before + 1 if row == last_row + 1 else 1
        last_row = row
        lowered = scores[row]
        score = round(lowered + n_before * _OFF_EACH_TIE, _DECIMALS)
        is_lowered = abs(_lowered(score, n_before) - lowered) <= 2 * np.spacing(np.float32(lowered))
        if is_lowered and _ties_with(score, scores[row - 1]):
            rounded[row] = score
        else:
            n_before = 0
    return rounded


def _scores_with_ties(scores: Sequence[float]) -> list[float]:
    """The scores that Anserini gives a ranking, computed from the scores of single documents."""
    all_lowered: list[float] = []
    before = inf
    n_before = 0
    for score in scores:
        n_before = n_before + 1 if _ties_with(score, before) else 0
        before = _lowered(score, n_before)
        all_lowered.append(before)
    return all_lowered


def _ties_with(score: float, before: float) -> bool:
    """Whether Anserini lowers a rounded score that follows a lowered one."""
    return bool(np.float32(before) - np.float32(score) <= _TIES_WITHIN)


def _lowered(score: float, n_before: int) -> float:
    """A rounded score in float32, after so many that tie with it."""
    return float(np.float32(float(np.float32(score)) - n_before * _OFF_EACH_TIE))

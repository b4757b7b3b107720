"""Whether a question is not about a collection: what a search claims beside its hits."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Self

from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.noted_rankings import topic_rankings
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.data.snippets import find_words, wanted_words
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.extensions.off_topic.kept import Threshold, read_threshold
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.trace import Notes

LINE = 'This collection does not seem to be about that.'
# Of each ranking, those that are looked at for a question's words.
MOST_HITS = 10
# Of a document: words are looked for in its first 20 pages or so.
_MOST_CHARACTERS = 50_000
# Kana and Chinese characters: their words have no spaces between.
_UNSPACED = re.compile('[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]')


class TopicCheck:
    """Says whether questions are not about a collection.

    Parameters
    ----------
    dense : the dense ranking of a search
    threshold : of its generation
    """

    def __init__(self, dense: DenseDocumentSearcher, threshold: Threshold) -> None:
        self._dense = dense
        self._threshold = threshold

    @classmethod
    def of(cls, ranker: Ranker) -> Self | None:
        """The check for a search of a collection.

        None if nothing is claimed: the search computes no vector of the question, or one
        that is not comparable with the fixed questions'; or the generation has no threshold.
        """
        dense = dense_ranking(ranker)
        if dense is None or dense.takes_docids:
            return None
        if dense.query_map is not None or dense.feedback is not None:
            return None
        threshold = read_threshold(dense.generation.folder, dense.generation.sha256)
        return None if threshold is None else cls(dense, threshold)

    def is_off_topic(self, query: str, ranking: Ranking | None, docids: Sequence[str]) -> bool:
        """Whether a question is not about the collection.

        Never where a document has all of its words: a vector says little about a word or a name.

        Parameters
        ----------
        query : the question
        ranking : its dense ranking; None if it is not at hand
        docids : of the best hits
        """
        return self._is_far(query, ranking) and not self._has_all_words(query, docids)

    def _is_far(self, query: str, ranking: Ranking | None) -> bool:
        """Whether the best passage's score is below the threshold."""
        vector = self._dense.vector_of(query)
        least = self._threshold.value + float(vector @ self._threshold.background)
        if ranking:
            # No document has a greater score than its best passage.
            if ranking.scores[0] >= least:
                return False
            if self._dense.is_of_best_passages:
                return True
        # Of a filter's hits, say: the claim is about the collection.
        return self._dense.best_score(vector) < least

    def _has_all_words(self, query: str, docids: Sequence[str]) -> bool:
        """Whether one of some documents has all words of a question."""
        wanted = wanted_words(query)
        if not wanted:
            return False
        for text in self._dense.generation.texts(docids):
            if text is not None and _has_words(query, wanted, text[:_MOST_CHARACTERS]):
                return True
        return False


def _has_words(query: str, wanted: Set[str], text: str) -> bool:
    """Whether a text has all words of a question, compared by their stems.

    A Chinese or Japanese word may be part of the text between two signs.
    """
    missing = wanted - {match.stem for match in find_words(query, text)}
    if not all(_UNSPACED.search(word) for word in missing):
        return False
    united = unite(text).casefold()
    return all(word in united for word in missing)


def is_off_topic(searcher: CollectionSearcher, topic: Query, notes: Notes) -> bool | None:
    """Whether a question is not about a collection; None if nothing is claimed.

    `notes` are what the search reported.
    """
    check = TopicCheck.of(searcher)
    if check is None:
        return None
    rankings = topic_rankings(searcher, notes, topic.qid)
    docids: list[str] = []
    for ranking in rankings.values():
        docids += ranking.docids[:MOST_HITS]
    dense = rankings.get(str(CollectionRanking.DENSE))
    return check.is_off_topic(topic.text, dense, list(dict.fromkeys(docids)))


def dense_ranking(ranker: Ranker) -> DenseDocumentSearcher | None:
    """The dense ranking of a collection among those that are searched."""
    for leaf in ranker.leaves():
        if isinstance(leaf, DenseDocumentSearcher):
            return leaf
    return None

"""Whether a question is not about a collection: what a search claims beside its hits."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Self

from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.generation import Generation
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
# FIELD:VALUE, where the value is a word, a phrase or a range: as in `js/filters.js`.
_LIKE_A_FILTER = re.compile(
    r'(?<!\S)(?P<field>[^\s:"]+):'
    r'(?:"[^"]{1,200}"|[\[{][^\]}]{1,200}[\]}]|[^\s:"\[{]\S*)(?!\S)'
)


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

    def is_off_topic(
        self, query: str, ranking: Ranking | None, docids: Sequence[str]
    ) -> bool | None:
        """Whether a question is not about the collection; None if nobody can tell.

        Never where a document has all of its words: a vector says little about a word or a name.
        Nobody can tell where the encoder does not know the language of the question or of a hit.

        Parameters
        ----------
        query : the question
        ranking : its dense ranking; None if it is not at hand
        docids : of the best hits
        """
        above = self._best_above_background(query, ranking)
        if above >= self._threshold.value:
            return False
        if self._dense.documents is not None:
            # A filter leaves out hits: the claim is about the collection.
            vector = self._dense.vector_of(query)
            docids = [*docids, *self._dense.nearest_documents(vector, MOST_HITS)]
        texts = self._texts(docids)
        share = _share_of_words(query, texts)
        if share == 1 or above >= self._threshold.with_words(share):
            return False
        from pyserini_repbert.extensions.off_topic.known_languages import knows_languages

        if not knows_languages(self._dense.query_encoder, query, texts):
            return None
        words = without_filters(query, self._dense.generation)
        if words == query:
            return True
        return bool(words) and self.is_off_topic(words, None, docids)

    def _best_above_background(self, query: str, ranking: Ranking | None) -> float:
        """The score of the best passage above the question's background.

        It may be less if that is not below the threshold.
        """
        vector = self._dense.vector_of(query)
        background = float(vector @ self._threshold.background)
        if ranking:
            above = ranking.scores[0] - background
            # No document has a greater score than its best passage.
            if self._dense.is_of_best_passages or above >= self._threshold.value:
                return above
        # Of a filter's hits, say: the claim is about the collection.
        return self._dense.best_score(vector) - background

    def _texts(self, docids: Sequence[str]) -> list[str]:
        """The first pages of documents."""
        texts = self._dense.generation.texts(docids)
        return [text[:_MOST_CHARACTERS] for text in texts if text is not None]


def _share_of_words(query: str, texts: Sequence[str]) -> float:
    """The share of a question's words, compared by their stems, that one of some texts has; of the
    text that has most.
    """
    wanted = wanted_words(query)
    if not wanted:
        return 0.0
    return max((_count_words(query, wanted, text) for text in texts), default=0) / len(wanted)


def _count_words(query: str, wanted: Set[str], text: str) -> int:
    """How many words of a question a text has.

    A Chinese or Japanese word may be part of the text between two signs.
    """
    missing = wanted - {match.stem for match in find_words(query, text)}
    n_words = len(wanted) - len(missing)
    unspaced = [word for word in missing if _UNSPACED.search(word)]
    if unspaced:
        united = unite(text).casefold()
        n_words += sum(word in united for word in unspaced)
    return n_words


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


def without_filters(query: str, generation: Generation) -> str:
    """A question without the parts that are written as a filter by a field of the collection.

    The search page offers to use them as one: `type:mail boiler` is a question about a boiler.
    """
    words = query
    for part in _LIKE_A_FILTER.finditer(query):
        if part['field'] in generation.field_types:
            words = words.replace(part.group(), ' ')
    return words if words == query else ' '.join(words.split())


def dense_ranking(ranker: Ranker) -> DenseDocumentSearcher | None:
    """The dense ranking of a collection among those that are searched."""
    for leaf in ranker.leaves():
        if isinstance(leaf, DenseDocumentSearcher):
            return leaf
    return None

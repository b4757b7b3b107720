"""Searching several collections: each ranking of all of them is one ranking, and these are fused.

Where the collections have one model, a document has the score that its collection gives it. The
background of such a ranking is computed over all passages together, as if they were in one
collection. BM25 counts from 0 in each.

Cosines of two encoders are not comparable: some encoders' are between .75 and .9. With several
models, a score is its difference from its collection's background, divided by the greatest score's
difference. The greatest score is a cosine of 1, or for other scores the best one of the collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.filter_texts import SearchedBeside
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.several.names import hits_of_index, prefix_of, split_docids
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.ranking import (
    NO_WORD,
    UNKNOWN_BACKGROUND,
    Background,
    Excerpts,
    Query,
    Ranker,
    Ranking,
    Reason,
    Run,
    Searcher,
    Unjudged,
)
from pyserini_repbert.trace import Trace

_LIKE = 'a document is compared within one collection: name that collection alone as the index'
_VECTORS = (
    'a stage that reads vectors or neighbours of documents is for one collection: name that '
    'collection alone as the index, or leave the stage out'
)
# Of the length of a vector that is normalised.
_ROUNDING = 1e-3


class MergedRanking(Searcher, recorded_as='MergedRanking'):
    """One ranking of several collections, by the scores that each gives its documents.

    Parameters
    ----------
    name : of the ranking
    rankers : of the collections, by their names
    sizes : how many passages each has
    beside : what a filter of each knows of the others
    has_one_model : whether the scores of all collections are comparable unchanged
    """

    def __init__(
        self,
        name: str,
        rankers: Mapping[str, Ranker],
        sizes: Mapping[str, int],
        beside: Mapping[str, SearchedBeside],
        has_one_model: bool,
    ) -> None:
        self.name = name
        self.names = tuple(rankers)
        self.parts = tuple(rankers.values())
        self._sizes = dict(sizes)
        self._beside = dict(beside)
        self._has_one_model = has_one_model

    def _rankers(self) -> Iterator[tuple[str, Any]]:
        """The ranking of each collection, after the collection's name."""
        return zip(self.names, self.parts, strict=True)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        runs = {
            name: part.with_settings(threads=self.threads).rank(topics, None, k)
            for name, part in self._rankers()
        }
        merged: Run = {}
        for topic in topics:
            rankings = {}
            for name, part in self._rankers():
                ranking = runs[name][topic.qid]
                if not self._has_one_model:
                    ranking = shares_of_greatest(ranking, part, topic)
                rankings[name] = ranking
            merged[topic.qid] = self._merge(rankings, k)
        return merged

    def _merge(self, rankings: Mapping[str, Ranking], k: int | None) -> Ranking:
        docids: list[str] = []
        scores: list[float] = []
        for name, ranking in rankings.items():
            prefix = prefix_of(name)
            docids += [f'{prefix}{docid}' for docid in ranking.docids]
            scores += ranking.scores
        ranking = rank_by_score(np.array(docids, object), np.array(scores, np.float64), k)
        return ranking.with_background(self._background(rankings))

    def _background(self, rankings: Mapping[str, Ranking]) -> Background:
        """The mean of the collections' known backgrounds, weighted by their passages, with the
        greatest of their best scores by chance.
        """
        n_passages = 0
        total = 0.0
        best = -inf
        for name, ranking in rankings.items():
            own = ranking.background
            if own.is_known:
                n_passages += self._sizes[name]
                total += self._sizes[name] * own.score
                best = max(best, own.score + own.chance)
        if not n_passages:
            return UNKNOWN_BACKGROUND
        score = total / n_passages
        return Background(score, max(0.0, best - score))

    @property
    def gives_document_scores(self) -> bool:
        if not self._has_one_model:
            return False
        return all(part.gives_document_scores for part in self.parts)

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        scores: list[float | None] = [None] * len(docids)
        split = split_docids(docids, self.names)
        for name, part in self._rankers():
            of_index = split[name]
            if of_index.docids:
                own_hits = hits_of_index(hits, name)
                own_scores = part.document_scores(topic, of_index.docids, own_hits)
                for row, score in zip(of_index.rows, own_scores, strict=True):
                    scores[row] = score
        return scores

    def unjudged(self, topic: Query) -> Unjudged | None:
        unjudged_of = {name: part.unjudged(topic) for name, part in self._rankers()}
        if not any(unjudged_of.values()):
            return None

        def of_all(docids: Sequence[str]) -> frozenset[str]:
            found: set[str] = set()
            split = split_docids(docids, self.names)
            for name, unjudged in unjudged_of.items():
                if unjudged is not None:
                    own = unjudged(split[name].docids)
                    found.update(f'{prefix_of(name)}{docid}' for docid in own)
            return frozenset(found)

        return of_all

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        reasons: dict[str, tuple[Reason, ...]] = {}
        split = split_docids(docids, self.names)
        for name, part in self._rankers():
            for docid, own in part.reasons(query, split[name].docids).items():
                reasons[f'{prefix_of(name)}{docid}'] = own
        return reasons

    def holds(self, docid: str) -> bool:
        split = split_docids([docid], self.names)
        for name, part in self._rankers():
            if split[name].docids:
                held: bool = part.holds(split[name].docids[0])
                return held
        return False

    def warnings(self, query: str) -> list[str]:
        """What all collections say. If any of them reads a word, the question has one."""
        said = [part.warnings(query) for part in self.parts]
        return list(dict.fromkeys(said[0])) if all(said) else []

    def identity(self) -> Mapping[str, Any]:
        return {**super().identity(), 'indexes': self.names}

    def by_documents(self) -> Self:
        """Raises InputError."""
        raise InputError(_LIKE, parameters=('like',))

    def encode(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Raises InputError: vectors of several collections are not of one space."""
        raise InputError(_VECTORS, parameters=('index', 'rerank'))

    def document_vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Raises InputError, as `encode`."""
        raise InputError(_VECTORS, parameters=('index', 'rerank'))

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through."""
        parts: list[Any] = [
            part.within(replace(wanted, beside=self._beside[name]))
            for name, part in self._rankers()
        ]
        return self.with_settings(parts=tuple(parts))

    @property
    def settings(self) -> SparseSettings:
        """Of BM25 in the first collection: `with_settings` gives its k1 and b to all."""
        first: Any = self.parts[0]
        settings: SparseSettings = first.settings
        return settings

    def with_settings(self, **changes: Any) -> Self:
        """As in `Ranker`; the collections' rankings get feedback, k1 and b."""
        parts: list[Any] = list(changes.pop('parts', self.parts))
        if 'feedback' in changes:
            feedback = changes.pop('feedback')
            parts = [part.with_settings(feedback=feedback) for part in parts]
        if 'settings' in changes:
            asked = changes.pop('settings')
            for number, part in enumerate(parts):
                own = replace(part.settings, k1=asked.k1, b=asked.b)
                parts[number] = part.with_settings(settings=own)
        return super().with_settings(parts=tuple(parts), **changes)


def shares_of_greatest(ranking: Ranking, ranker: Any, topic: Query) -> Ranking:
    """The hits with what each score has above the background, as a share of the greatest's.

    Parameters
    ----------
    ranking : with its background, whose score becomes 0
    ranker : that made it
    topic : whose ranking it is
    """
    if not ranking:
        return ranking
    background = ranking.background if ranking.background.is_known else NO_WORD
    greatest = ranking.scores[0]
    vector_of = getattr(ranker, 'vector_of', None)
    if vector_of is not None:
        vector = vector_of(topic.text)
        length = float(vector @ vector)
        if abs(length - 1) < _ROUNDING:
            greatest = 1.0
    width = greatest - background.score
    if width <= 0:
        width = 1.0
    scores = [(score - background.score) / width for score in ranking.scores]
    return Ranking(ranking.docids, scores, background=Background(0.0, background.chance / width))


class SeveralSearcher(Fusion, recorded_as='SeveralSearcher'):
    """The search of several collections by all their rankings.

    Parameters
    ----------
    rankings : which are fused
    searchers : of each collection by its name; they give hits their passages
    settings : how the rankings are fused
    """

    has_excerpts = True

    def __init__(
        self,
        rankings: Sequence[MergedRanking],
        searchers: Mapping[str, Ranker],
        settings: FusionSettings,
    ) -> None:
        super().__init__(rankings, settings)
        self.searchers = dict(searchers)
        self.name = '+'.join(self.searchers)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        texts: list[str | None] = [None] * len(docids)
        for name, of_index in split_docids(docids, list(self.searchers)).items():
            own_texts = self.searchers[name].texts(of_index.docids)
            for row, text in zip(of_index.rows, own_texts, strict=True):
                texts[row] = text
        return texts

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        """The hits with the passages of each that fit the query best."""

        def add_texts(searcher: Ranker, own_hits: Ranking) -> Ranking:
            return searcher.with_stored_texts(query, own_hits, n_excerpts)

        return self._with_texts_of_each(ranking, add_texts)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        def add_texts(searcher: Ranker, own_hits: Ranking) -> Ranking:
            return searcher.with_shown_texts(query, own_hits)

        return self._with_texts_of_each(ranking, add_texts)

    def _with_texts_of_each(
        self, ranking: Ranking, add_texts: Callable[[Ranker, Ranking], Ranking]
    ) -> Ranking:
        """The hits with texts, which `add_texts` gives the hits of each index."""
        excerpts: dict[str, Excerpts] = {}
        for name, searcher in self.searchers.items():
            own_hits = hits_of_index(ranking, name)
            if own_hits:
                for hit in add_texts(searcher, own_hits):
                    excerpts[f'{prefix_of(name)}{hit.docid}'] = hit.excerpts
        return ranking.with_excerpts(excerpts)

    def by_documents(self) -> Self:
        """Raises InputError."""
        raise InputError(_LIKE, parameters=('like',))

    def identity(self) -> Mapping[str, Any]:
        searchers = {name: searcher.identity() for name, searcher in self.searchers.items()}
        return {
            **super().identity(),
            'indexes': searchers,
            'method': str(self.settings.method),
            'weights': self.settings.weights,
            'normalize': str(self.settings.normalize),
        }

    def close(self) -> None:
        super().close()
        for searcher in self.searchers.values():
            searcher.close()

"""Lucene indexes of impacts: integer term weights, searched with a query's term weights.

Pyserini builds them of uniCOIL's, SPLADE's and other vectors (its `LuceneImpactSearcher`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.jvm import (
    calling,
    java_calls,
    java_class,
    lift_clause_limit,
    quiet_java,
)
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher, index_folder
from pyserini_repbert.ranking import NO_WORD, Query, Run, Searcher, by_score
from pyserini_repbert.trace import Trace


class ImpactQueryEncoder(Protocol):
    """An encoder of queries with Pyserini's interface."""

    def encode(self, query: str) -> dict[str, int]:
        """{term: whole weight}; a weight below 1 is left out."""


class ImpactSearcher(Searcher, recorded_as='ImpactSearcher'):
    """Searches a Lucene index of impacts; safe to use from several threads.

    Scores are inner products of the weights of query and passage. Pyserini's searcher leaves out
    terms that all passages have, unless its `min_idf` is negative; here, they count.

    Parameters
    ----------
    index : the index's folder or name
    query_encoder : gives the weights of a query's terms
    unit : what a score of 1 is multiplied by
    """

    def __init__(
        self, index: StrPath, query_encoder: ImpactQueryEncoder, unit: float = 1.0
    ) -> None:
        quiet_java()
        self.index = index_folder(index)
        self.query_encoder = query_encoder
        self._unit = unit
        self._stored = LuceneSparseSearcher(self.index)
        self.name = self.index.name
        self.size = self._stored.size
        with java_calls():
            # A model may weigh more terms than the question has words.
            lift_clause_limit()
            searcher = java_class('io.anserini.search.SimpleImpactSearcher')
            self._java = calling(searcher, str(self.index.absolute()))
            self._map = java_class('java.util.HashMap')
            self._list = java_class('java.util.ArrayList')
            self._whole = java_class('java.lang.Integer')

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        encoded = {}
        for topic in topics:
            weights = self._encode(topic.text)
            if weights:
                encoded[topic.qid] = weights
        rankings: Run = {}
        if not encoded:
            return rankings
        depth = self.size if k is None else min(k, self.size)
        with java_calls():
            queries = self._list()
            qids = self._list()
            for qid, weights in encoded.items():
                terms = self._map()
                for term, weight in weights.items():
                    terms.put(term, self._whole(weight))
                queries.add(terms)
                qids.add(qid)
            answers = calling(self._java.batch_search, queries, qids, depth, self.threads)
            for entry in answers.entrySet().toArray():
                hits = list(entry.getValue())
                scores = [hit.score * self._unit for hit in hits]
                ranking = by_score([hit.docid for hit in hits], scores)
                rankings[str(entry.getKey())] = ranking.with_background(NO_WORD)
        return rankings

    def _encode(self, text: str) -> dict[str, int]:
        """The whole weights of a query's terms; those below 1 are left out."""
        weights = {term: int(weight) for term, weight in self.query_encoder.encode(text).items()}
        return {term: weight for term, weight in weights.items() if weight > 0}

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return [text or None for text in self._stored.texts(docids)]

    def close(self) -> None:
        self._stored.close()
        with java_calls():
            self._java.close()

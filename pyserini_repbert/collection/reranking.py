"""The search of a collection with the rerankers to which a person set it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.extension import loaded
from pyserini_repbert.ranking import (
    Candidate,
    Query,
    Ranker,
    Ranking,
    Run,
    Searcher,
    check_question,
    with_best_passages,
)
from pyserini_repbert.trace import SILENT, Notes, Trace

if TYPE_CHECKING:
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.rerank.base import Reranker

logger = logging.getLogger(__name__)

# What a trace calls the search before the rerankers.
SEARCH = 'search'


class CollectionAnswer(list[Candidate]):
    """The hits of a question, best first; what extensions say of the question are attributes."""


def answer_of(
    hits: Sequence[Candidate], searcher: CollectionSearcher, topic: Query, notes: Notes
) -> CollectionAnswer:
    """The hits of a question, with what extensions say of it.

    Parameters
    ----------
    hits : best first
    searcher : found them, or what was reranked
    topic : the question
    notes : what the searcher reported
    """
    answer = CollectionAnswer(hits)
    for part in loaded('in_collections'):
        vars(answer).update(part.of_answer(searcher, topic, notes))
    return answer


class RerankedCollectionSearcher(Searcher, recorded_as='RerankedCollectionSearcher'):
    """Searches a collection, and reranks its best hits, as `pipeline.Pipeline` does.

    It is for Python alone: commands and the service open a pipeline.

    Parameters
    ----------
    searcher : gives the hits, and the passages of each that fit the query best
    rerankers : the first reads the best hits, each further one the best of the one before; none:
        the hits stay in their order
    """

    has_excerpts = True

    def __init__(self, searcher: CollectionSearcher, rerankers: Sequence[Reranker]) -> None:
        self.searcher = searcher
        self.rerankers = tuple(rerankers)
        self.parts: tuple[Ranker, ...] = (searcher, *rerankers)
        self.name = searcher.name

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        depth = k
        if k is not None and self.rerankers:
            depth = max(k, self.rerankers[0].reads)
        ranked = self.searcher.rank(topics, None, depth, trace.part(SEARCH))
        return self.rerank(topics, ranked, trace)

    def rerank(self, topics: Sequence[Query], run: Run, trace: Trace = SILENT) -> Run:
        """The run of these topics, reranked."""
        topics = [topic for topic in topics if run[topic.qid]]
        if not (topics and self.rerankers):
            return run
        reranked = with_best_passages(topics, run, source=self.searcher, reranker=self.rerankers[0])
        for reranker in self.rerankers:
            reranked = reranker.rank(topics, reranked, None, trace.part(reranker.label))
        return run | reranked

    def search(self, query: str, k: int = 10) -> CollectionAnswer:
        """As in `Searcher`; the answer has what extensions say of the question."""
        check_question(query)
        topic = Query('0', query)
        notes = Notes()
        ranking = self.rank([topic], None, k, notes)[topic.qid]
        for warning in self.warnings(query):
            logger.warning('%s', warning)
        if self.rerankers:
            hits = self.with_stored_texts(query, ranking)
        else:
            hits = self.with_shown_texts(query, ranking)
        return answer_of(hits, self.searcher, topic, notes.parts[SEARCH])

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        return self.searcher.with_stored_texts(query, ranking, n_excerpts)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        return self.searcher.with_shown_texts(query, ranking)


def stored_reranker(stage: str, device: str) -> Reranker:
    """The reranker of a stage, as NAME@K, that a collection names."""
    from pyserini_repbert.names.rerankers import open_reranker

    name, _, depth = stage.partition('@')
    return open_reranker(name, device).with_settings(reads=int(depth))

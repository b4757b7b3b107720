"""Judged topics to learn from, and rankers and rerankers whose answers are known."""

from dataclasses import dataclass

import numpy as np

from pyserini_repbert.ranking import Query, Ranker
from pyserini_repbert.rerank import Reranker


class FixedRanker(Ranker):
    """Gives each topic the ranking of its qid."""

    name = 'fixed'

    def __init__(self, rankings):
        self.rankings = rankings

    def _rank(self, topics, run, k, trace):
        return {topic.qid: self.rankings[topic.qid] for topic in topics}


class BackwardsReranker(Reranker):
    """Scores candidates by their rank, the last one best."""

    name = 'backwards'
    needs_text = False

    def score_lists(self, queries, lists, on_progress=None):
        return [np.arange(len(hits), dtype=float) for hits in lists]


class UnmovedReranker(Reranker):
    """Leaves every candidate where it is."""

    name = 'unmoved'
    needs_text = False

    def score_lists(self, queries, lists, on_progress=None):
        return [-np.arange(len(hits), dtype=float) for hits in lists]


class UndecidedReranker(UnmovedReranker):
    """Finds all candidates equally good."""

    name = 'undecided'

    def score_lists(self, queries, lists, on_progress=None):
        return [np.ones(len(hits)) for hits in lists]


@dataclass(frozen=True)
class Judged:
    """Topics '0', '1', …, and the judgments of each."""

    topics: list[Query]
    qrels: dict[str, dict[str, int]]


def turned_topics(searcher, n_topics):
    """Topics that a map can help: a topic's vector is that of its only relevant passage, 'd0' of
    topic '0', with the second half of the dimensions negated.
    """
    vectors = searcher.index.vectors(np.arange(n_topics))
    vectors[:, vectors.shape[1] // 2 :] *= -1
    vector_of = {f'topic {number}': vector for number, vector in enumerate(vectors)}
    searcher.encode = lambda queries: np.stack([vector_of[query] for query in queries])
    topics = [Query(str(number), text) for number, text in enumerate(vector_of)]
    return Judged(topics, {topic.qid: {f'd{topic.qid}': 1} for topic in topics})

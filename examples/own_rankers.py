"""A first stage and a reranker, as you might write them: `MODULE:CLASS` names them in commands, the
service and PyTerrier.

PYTHONPATH=examples python -m pyserini_repbert.search --sparse own_rankers:SharedWords@docs.jsonl
    --rerank own_rankers:ShortestFirst@50 --query 'why do tomatoes split'
"""

import json

import numpy as np

from pyserini_repbert.ranking import Searcher, by_score
from pyserini_repbert.rerank import Reranker


class SharedWords(Searcher):
    """Scores a passage of a JSON lines corpus (`id`, `contents`) by how many of its words are in
    the query.
    """

    def __init__(self, index):
        with open(index, encoding='utf-8') as lines:
            self.passages = {
                passage['id']: passage['contents'] for passage in map(json.loads, lines)
            }

    def _rank(self, topics, run, k, trace):
        return {topic.qid: self._ranking(set(topic.text.lower().split())) for topic in topics}

    def _ranking(self, words):
        shared = {
            docid: sum(word in words for word in text.lower().split())
            for docid, text in self.passages.items()
        }
        return by_score(
            [docid for docid in shared if shared[docid]], [float(n) for n in shared.values() if n]
        )

    def texts(self, docids):
        return [self.passages.get(docid) for docid in docids]


class ShortestFirst(Reranker):
    """Scores a passage by its length, the shorter the better."""

    def score_lists(self, queries, lists, on_progress=None):
        return [np.array([-len(hit.text) for hit in hits], dtype=float) for hits in lists]

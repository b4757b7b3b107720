"""What a reranker of the user's own says of its scores: the scores, and no more."""

import numpy as np

from pyserini_repbert.explain import explanation
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import Reranker


class ShortestFirst(Reranker):
    """Scores a passage by its length, the shorter the better."""

    name = 'shortest'

    def score_lists(self, queries, lists, on_progress=None):
        return [np.array([-float(len(hit.text)) for hit in candidates]) for candidates in lists]


def test_its_scores_are_shown_in_the_order_of_the_hits():
    hits = Ranking(['long', 'short'], [2.0, 1.0], ['abc', 'a'])
    assert explanation(ShortestFirst(), 'a question', hits) == {
        'model': 'shortest',
        'system': 'own',
        'query': 'a question',
        'docids': ['long', 'short'],
        'scores': [-3.0, -1.0],
        'inferences': 2,
    }


def test_its_reason_names_its_class():
    reason = ShortestFirst().reason('a question', Candidate('long', -3.0, 'abc'))
    assert reason == 'scored -3.0000 by ShortestFirst'

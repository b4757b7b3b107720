"""The share of a question's words that BM25 finds in a document."""

import math

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.confidence import HitFeatures, runs_of_rankings
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.ranking import Query
from pyserini_repbert.trace import Notes

pytestmark = pytest.mark.jvm

WORDS = 2


def test_the_share_is_of_the_greatest_score(tiny_checkpoint, tmp_path):
    documents = [
        {'id': 'a', 'text': 'cat mat', 'kind': 'x'},
        {'id': 'b', 'text': 'cat', 'kind': 'y'},
        {'id': 'c', 'text': 'mat', 'kind': 'y'},
    ]
    topic = Query('1', 'cat unknown')
    with Collection.open(tmp_path / 'mine', encoder=str(tiny_checkpoint())) as collection:
        collection.sync(documents)
        searcher = collection.searcher()
        # Lucene's idf: 'cat' is in two of three documents, 'unknown' in none.
        greatest = math.log(1 + 1.5 / 2.5) + math.log(1 + 3.5 / 0.5)
        assert searcher.words.greatest_score(topic.text) == pytest.approx(greatest, rel=1e-4)
        assert searcher.words.greatest_score(' ') == 0
        shares = {}
        for filter_text in (None, 'kind:y'):
            within = searcher.within(DocumentFilter(filter_text))
            notes = Notes()
            within.rank([topic], None, 3, notes)
            rankings = {name: run['1'] for name, run in runs_of_rankings(within, notes).items()}
            rows = HitFeatures(within.dense, within.words).of_hits(
                topic.text, ['a', 'b', 'c'], rankings
            )
            shares[filter_text] = rows[:, WORDS]
        searcher.close()
    assert shares[None][1] > shares[None][0] > 0
    assert shares[None][2] == 0
    assert np.all(shares[None] < 1)
    assert shares['kind:y'][1] == pytest.approx(shares[None][1], rel=1e-3)

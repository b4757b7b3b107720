"""The share of a question's words that BM25 finds in a document."""

import math
import re

import numpy as np
import pytest
from folders import question_documents
from learned_collections import let_learn
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.noted_rankings import runs_of_rankings
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.extensions.confidence import estimating
from pyserini_repbert.extensions.confidence.features import HitFeatures
from pyserini_repbert.extensions.confidence.models import (
    HIT_FEATURES,
    ConfidenceModel,
    HeldOutTest,
    LogisticModel,
)
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.threshold import first_depth
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.ranking import Query
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from pyserini_repbert.trace import Notes

pytestmark = pytest.mark.jvm

WORDS = 2


def model():
    zeros = (0.0,) * len(HIT_FEATURES)
    part = LogisticModel(zeros, (1.0,) * len(HIT_FEATURES), zeros, 0.0)
    test = HeldOutTest(0.8, 0.6)
    return ConfidenceModel(part, part, 'learned', test, test, {}, '')


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


def test_confidence_searches_no_deeper(tiny_checkpoint, tmp_path, monkeypatch):
    depths = []
    search = Fusion._search

    def noted(self, topics, depth, traces):
        depths.append(depth)
        return search(self, topics, depth, traces)

    monkeypatch.setattr(Fusion, '_search', noted)
    monkeypatch.setattr(estimating, 'model_for', lambda *_: model())
    with Collection.open(tmp_path / 'mine', encoder=str(tiny_checkpoint())) as collection:
        collection.sync([{'id': str(number), 'text': f'w{number} mat'} for number in range(20)])
        plain = collection.search('w3 mat')
        hits = collection.search('w3 mat', confidence=True)
    assert [hit.docid for hit in hits] == [hit.docid for hit in plain]
    assert depths == [first_depth(10)] * 2


def test_words_and_their_weights_are_asked_once(tiny_checkpoint, tmp_path, monkeypatch):
    asked = []
    weight = LuceneSparseSearcher._weight

    def noted(self, word):
        asked.append(word)
        return weight(self, word)

    monkeypatch.setattr(LuceneSparseSearcher, '_weight', noted)
    with Collection.open(tmp_path / 'mine', encoder=str(tiny_checkpoint())) as collection:
        collection.sync([{'id': 'a', 'text': 'cat mat'}])
        searcher = collection.searcher()
        first = searcher.words.greatest_score('cat mat')
        assert searcher.words.greatest_score('cat mat') == first
        assert searcher.words.greatest_score('mat sat mat') > first
        searcher.close()
    assert asked == ['cat', 'mat', 'sat']


def test_one_search_is_known_by_commands_python_and_the_service(tiny_checkpoint, tmp_path, capsys):
    """Vectors and words, fused; what is fused otherwise has no confidence."""
    folder = tmp_path / 'mine'
    with Collection.open(folder, encoder=str(tiny_checkpoint())) as collection:
        collection.sync(question_documents())
    let_learn(folder)
    with Collection.open(folder) as collection:
        hits = collection.search('w1 mat', 3, confidence=True)
    flags = ['search', '--index', str(folder), '--query', 'w1 mat', '--hits', '3', '--confidence']
    capsys.readouterr()
    assert run(main, flags) == 0
    out = capsys.readouterr().out
    for hit in hits:
        line = rf'{hit.docid}  \(tiny \S+, bm25 \S+, relevant: {hit.probability:.2f}\)'
        assert re.search(line, out)
    for other, difference in (
        (['--fusion', 'rrf'], 'fusion interpolation, here rrf'),
        (['--fusion', 'interpolation', '--alpha', '0.9'], 'here 0.1'),
        (['--k1', '2'], 'k1 0.9, here 2.0'),
        (['--depth', '100'], 'depth none, here 100'),
        (['--rankings', 'dense'], 'rankings bm25 dense, here dense'),
    ):
        assert run(main, [*flags, *other]) == 2
        assert difference in capsys.readouterr().err

    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))})
    with ready_client(settings) as client:
        assert client.get('/v1/mine').json()['confidence'] is True
        address = '/v1/mine/search?query=w1+mat&hits=3&confidence=true'
        for systems in ('', '&system=hybrid', '&system=bm25,dense'):
            candidates = client.get(f'{address}{systems}').json()['candidates']
            found = [(own['docid'], own['probability']) for own in candidates]
            assert found == [(hit.docid, pytest.approx(hit.probability, abs=1e-4)) for hit in hits]
        for other in ('fusion=rrf', 'fusion=interpolation&alpha=0.9', 'system=dense'):
            refused = client.get(f'{address}&{other}')
            assert refused.status_code == 400
            assert 'confidence was learned for another search' in refused.text

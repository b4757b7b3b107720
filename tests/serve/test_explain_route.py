"""/v1/{index}/explain: what rerankers say of passages."""

import json

import numpy as np
import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.explain import similarity_maps
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import (
    CedrReranker,
    DuoBertReranker,
    EpicReranker,
    MonoBertReranker,
    aggregate,
)

QUERY = 'cat sat on the mat'
DOCIDS = ['d0', 'd1', 'd2']


@pytest.fixture
def texts(client):
    """The passages of the docids."""
    return [client.get(f'/v1/tiny/doc/{docid}').json()['doc'] for docid in DOCIDS]


def _explained(client, model, docids=DOCIDS, **more):
    answer = client.get(
        '/v1/tiny/explain', params={'query': QUERY, 'model': model, 'docid': docids, **more}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_epics_contributions_sum_to_the_score(client, rerankers, texts):
    found = _explained(client, 'epic', top=4)
    assert (found['model'], found['system'], len(found['passages'])) == ('epic', 'epic', 3)
    candidates = [Candidate(docid, text=text) for docid, text in zip(DOCIDS, texts, strict=True)]
    scores = {hit.docid: hit.score for hit in EpicReranker(rerankers[2]).rerank(QUERY, candidates)}
    for passage in found['passages']:
        assert sum(own['contribution'] for own in passage['contributions']) == pytest.approx(
            passage['score']
        )
        assert passage['score'] == pytest.approx(scores[passage['docid']], abs=1e-4)
        assert len(passage['expansions']) == 4
        words = {own['term'] for own in passage['passage_terms']}
        assert not words & {own['term'] for own in passage['expansions']}


def test_cedrs_maps(client, rerankers, texts):
    found = _explained(client, 'cedr', ['d1'], layer='0,2')
    assert found == _explained(client, 'cedr', ['d1'], layer=[0, 2])
    (passage,) = found['passages']
    assert [own['layer'] for own in passage['maps']] == [0, 2] and passage['n_layers'] == 2
    expected = similarity_maps(CedrReranker(rerankers[3]), QUERY, texts[1], [0, 2])
    for own, true in zip(passage['maps'], expected, strict=True):
        assert np.array(own['values']) == pytest.approx(true.values, abs=1e-4)
    assert (
        passage['query_tokens'] == expected[0].query
        and passage['passage_tokens'] == expected[0].passage
    )


def test_duoberts_matrix_and_its_five_aggregations(client, rerankers, texts):
    found = _explained(client, 'duobert', samples=1, seed=3)
    p = np.array(found['probabilities'], dtype=float)
    assert np.isnan(np.diag(p)).all() and found['docids'] == DOCIDS and found['inferences'] == 6
    duo = DuoBertReranker(rerankers[1])
    (differences,) = duo.pair_differences([QUERY], [Ranking(DOCIDS, [0, 0, 0], texts)])
    off = ~np.eye(3, dtype=bool)
    assert p[off] == pytest.approx(1 / (1 + np.exp(-differences[off])), abs=1e-5)
    for method in ('sum', 'binary'):
        assert found['methods'][method]['scores'] == pytest.approx(
            aggregate(p, method).tolist(), abs=1e-4
        )
    for method in ('min', 'max'):
        assert found['methods'][method]['scores'] == pytest.approx(
            np.log(aggregate(p, method)).tolist(), abs=1e-4
        )
    row = dict(zip(DOCIDS, np.where(off, p, 0), strict=True))
    for docid, score in zip(DOCIDS, found['methods']['sample']['scores'], strict=True):
        assert min(abs(row[docid] - score)) < 1e-5  # one competitor's probability
    for own in found['methods'].values():
        ranked = dict(zip(DOCIDS, own['scores'], strict=True))
        assert own['order'] == sorted(
            DOCIDS, key=lambda docid: (-ranked[docid], DOCIDS.index(docid))
        )
    assert _explained(client, 'duobert')['inferences'] == 0  # the matrix is kept


def test_monoberts_scores(client, rerankers, texts):
    found = _explained(client, 'monobert')
    candidates = [Candidate(docid, text=text) for docid, text in zip(DOCIDS, texts, strict=True)]
    scores = {
        hit.docid: hit.score for hit in MonoBertReranker(rerankers[0]).rerank(QUERY, candidates)
    }
    assert found['scores'] == pytest.approx([scores[docid] for docid in DOCIDS], abs=1e-5)
    assert found['probabilities'] == pytest.approx(np.exp(found['scores']), abs=1e-5)


@pytest.mark.parametrize(('place', 'system'), enumerate(['monobert', 'duobert', 'epic', 'cedr']))
def test_the_command_prints_the_same(place, system, client, rerankers, bundle, capsys):
    flags = [
        '--model',
        rerankers[place],
        '--index',
        str(bundle),
        '--docid',
        *DOCIDS,
        '--query',
        QUERY,
        '--json',
    ]
    assert command.run(explain, flags) == 0
    assert json.loads(capsys.readouterr().out).items() <= _explained(client, system).items()


def test_explanations_come_with_a_search(client):
    asked = {'query': QUERY, 'explain': 'epic,monobert', 'explain_hits': 2}
    answer = client.get('/v1/tiny/search', params=asked).json()
    best = [hit['docid'] for hit in answer['candidates'][:2]]
    epic, mono = answer['explanations']
    assert [passage['docid'] for passage in epic['passages']] == best and mono['docids'] == best

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
)

QUERY = 'cat sat on the mat'
DOCIDS = ['d0', 'd1', 'd2']


@pytest.fixture
def texts(client):
    """The passages of the docids."""
    return [client.get(f'/v1/tiny/doc/{docid}').json()['doc'] for docid in DOCIDS]


def _explain(client, model, docids=DOCIDS, **options):
    parameters = {'query': QUERY, 'model': model, 'docid': docids, **options}
    answer = client.get('/v1/tiny/explain', params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _candidates(texts):
    return [Candidate(docid, text=text) for docid, text in zip(DOCIDS, texts, strict=True)]


def test_an_explanation_names_model_and_system(client):
    explanation = _explain(client, 'epic')
    assert explanation['model'] == explanation['system'] == 'epic'
    assert explanation['query'] == QUERY
    assert [passage['docid'] for passage in explanation['passages']] == DOCIDS


def test_epics_contributions_sum_to_the_score(client, rerankers, texts):
    reranked = EpicReranker(rerankers[2]).rerank(QUERY, _candidates(texts))
    score_of = {hit.docid: hit.score for hit in reranked}
    for passage in _explain(client, 'epic')['passages']:
        contributions = [term['contribution'] for term in passage['contributions']]
        assert sum(contributions) == pytest.approx(passage['score'])
        assert passage['score'] == pytest.approx(score_of[passage['docid']], abs=1e-4)


def test_epics_expansions_are_words_that_a_passage_lacks(client):
    for passage in _explain(client, 'epic', top=4)['passages']:
        expansions = {term['term'] for term in passage['expansions']}
        assert len(expansions) == 4
        assert not expansions & {term['term'] for term in passage['passage_terms']}


def test_cedrs_maps_are_those_of_the_layers(client, rerankers, texts):
    (passage,) = _explain(client, 'cedr', ['d1'], layer=[0, 2])['passages']
    assert passage['n_layers'] == 2
    assert [layer['layer'] for layer in passage['maps']] == [0, 2]
    expected = similarity_maps(CedrReranker(rerankers[3]), QUERY, texts[1], [0, 2])
    for layer, true in zip(passage['maps'], expected, strict=True):
        assert np.array(layer['values']) == pytest.approx(true.values, abs=1e-4)
        assert passage['query_tokens'] == true.query
        assert passage['passage_tokens'] == true.passage


def test_layers_are_given_in_several_parameters_or_with_commas(client):
    assert _explain(client, 'cedr', ['d1'], layer='0,2') == _explain(
        client, 'cedr', ['d1'], layer=[0, 2]
    )


@pytest.fixture
def pairs(client):
    """duoBERT's explanation of three passages, whose pairs are compared for the first time."""
    return _explain(client, 'duobert', samples=1, seed=3)


@pytest.fixture
def probabilities(pairs):
    """Of each pair, float64 (3, 3); NaN on the diagonal."""
    return np.array(pairs['probabilities'], dtype=float)


OFF_DIAGONAL = ~np.eye(3, dtype=bool)


def test_duoberts_matrix_has_each_pair_but_the_diagonal(pairs, probabilities):
    assert pairs['docids'] == DOCIDS
    assert pairs['inferences'] == 3 * 2
    assert np.isnan(np.diag(probabilities)).all()
    assert not np.isnan(probabilities[OFF_DIAGONAL]).any()


def test_duoberts_probabilities_are_logistic_in_the_differences(probabilities, rerankers, texts):
    duo = DuoBertReranker(rerankers[1])
    (differences,) = duo.pair_differences([QUERY], [Ranking(DOCIDS, [0, 0, 0], texts)])
    expected = 1 / (1 + np.exp(-differences[OFF_DIAGONAL]))
    assert probabilities[OFF_DIAGONAL] == pytest.approx(expected, abs=1e-5)


def test_duoberts_sum_and_binary_are_of_probabilities(pairs, probabilities):
    sums = np.nansum(probabilities, axis=1)
    wins = (probabilities > 0.5).sum(axis=1)
    assert pairs['methods']['sum']['scores'] == pytest.approx(sums.tolist(), abs=1e-4)
    assert pairs['methods']['binary']['scores'] == pytest.approx(wins.tolist(), abs=1e-4)


def test_duoberts_min_and_max_are_of_their_logarithms(pairs, probabilities):
    least = np.log(np.nanmin(probabilities, axis=1))
    greatest = np.log(np.nanmax(probabilities, axis=1))
    assert pairs['methods']['min']['scores'] == pytest.approx(least.tolist(), abs=1e-4)
    assert pairs['methods']['max']['scores'] == pytest.approx(greatest.tolist(), abs=1e-4)


def test_duoberts_sample_of_one_is_the_probability_of_one_competitor(pairs, probabilities):
    for row, score in zip(probabilities, pairs['methods']['sample']['scores'], strict=True):
        assert np.nanmin(abs(row - score)) < 1e-5


def test_the_order_of_each_aggregation_is_by_score(pairs):
    for aggregation in pairs['methods'].values():
        ranked = [Candidate(*pair) for pair in zip(DOCIDS, aggregation['scores'], strict=True)]
        ranked.sort(key=lambda hit: -hit.score)  # a stable sort: ties keep their order
        assert aggregation['order'] == [hit.docid for hit in ranked]


def test_duoberts_matrix_is_kept(pairs, client):
    assert _explain(client, 'duobert')['inferences'] == 0


def test_monoberts_scores_are_its_own(client, rerankers, texts):
    explanation = _explain(client, 'monobert')
    reranked = MonoBertReranker(rerankers[0]).rerank(QUERY, _candidates(texts))
    score_of = {hit.docid: hit.score for hit in reranked}
    expected = [score_of[docid] for docid in DOCIDS]
    assert explanation['scores'] == pytest.approx(expected, abs=1e-5)
    assert explanation['probabilities'] == pytest.approx(np.exp(expected), abs=1e-5)


@pytest.mark.parametrize(('number', 'system'), enumerate(['monobert', 'duobert', 'epic', 'cedr']))
def test_the_command_prints_the_same(number, system, client, rerankers, bundle, capsys):
    model = ['--model', rerankers[number], '--index', str(bundle)]
    hits = ['--docid', *DOCIDS, '--query', QUERY]
    assert command.run(explain, [*model, *hits, '--json']) == 0
    printed = json.loads(capsys.readouterr().out)
    answer = _explain(client, system)
    assert printed == {name: answer[name] for name in printed}


def test_explanations_come_with_a_search(client):
    parameters = {'query': QUERY, 'explain': 'epic,monobert', 'explain_hits': 2}
    answer = client.get('/v1/tiny/search', params=parameters).json()
    best = [hit['docid'] for hit in answer['candidates'][:2]]
    epic, mono = answer['explanations']
    assert [passage['docid'] for passage in epic['passages']] == best
    assert mono['docids'] == best


def test_an_index_of_passages_is_explained_by_rerankers(client):
    refused = client.get('/v1/tiny/explain', params={'query': QUERY, 'docid': DOCIDS})
    assert refused.status_code == 400
    assert refused.json()['error'] == (
        "index 'tiny' is not a collection, whose rankings explain hits: name a reranker as 'model'"
    )

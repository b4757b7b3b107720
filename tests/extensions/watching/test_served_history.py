"""A service tells how the judged questions were answered, generation by generation."""

import pytest
from judged import N_QUESTIONS, judge, wait_for_learning

from pyserini_repbert.collection import Collection
from pyserini_repbert.extensions.watching import measure_generation


@pytest.fixture
def folder(judged_collection):
    return judged_collection


@pytest.fixture
def client(folder, serving_path):
    return serving_path(folder)


def test_the_history_has_what_was_lost(client, folder):
    before = {'api': 'v1', 'index': 'mine', 'generations': [], 'is_newest': False}
    assert client.get('/v1/mine/history').json() == before
    for number in range(3):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    judge(client, 'what is not there', 'wanted0', 0)
    first = measure_generation(folder)
    with Collection.open(folder) as collection:
        collection.delete('wanted1')
    measure_generation(folder)
    history = client.get('/v1/mine/history').json()
    assert history['is_newest'] is True
    older, newer = history['generations']
    assert (older['questions'], older['with_relevant']) == (4, 3)
    assert {'question': 'what is not there', 'answered': None} in older['unanswered']
    assert older['ndcg']['mean'] == first.ndcg.mean
    assert older['change'] is None
    assert {'question': 'cat w1', 'answered': None} in newer['unanswered']
    change = newer['change']
    assert change['since'] == older['generation']
    lost = change['questions'][0]
    assert lost['question'] == 'cat w1'
    assert lost['before']['condensed'] == 1
    assert lost['after'] == {'ndcg': 0, 'condensed': 0, 'answered': None}
    judge(client, 'cat w1', 'plain1', 2)
    assert client.get('/v1/mine/history').json()['is_newest'] is False


@pytest.mark.slow
def test_a_learning_measures_the_search_as_it_is(client):
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    assert client.post('/v1/mine/learn', json={}).json()['state'] == 'running'
    assert wait_for_learning(client)['state'] == 'done'
    (generation,) = client.get('/v1/mine/history').json()['generations']
    assert generation['questions'] == N_QUESTIONS


def test_a_frozen_index_has_no_history(bundle, serving_path, tmp_path):
    client = serving_path(bundle, {'judgments': str(tmp_path / 'own.sqlite')})
    assert client.get('/v1/mine/history').status_code == 403

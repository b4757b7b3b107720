"""Rerankers that read the index, in a service: offered where its settings name them."""

import pytest
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

SEARCH = '/v1/tiny/search'
WORDS = 'cat dog fish bird sat ate ran mat hat red blue big small old new'.split()


@pytest.fixture
def rerankers(rerankers):
    """Those of the other tests, MMR and LADR."""
    return (*rerankers, 'mmr', 'ladr')


@pytest.fixture
def graph(bundle):
    assert command.run(index_command, ['neighbours', '--index', str(bundle), '--quiet']) == 0


def docids(answer):
    assert answer.status_code == 200, answer.text
    return [hit['docid'] for hit in answer.json()['candidates']]


def ask(client, stage, hits=12):
    return client.get(SEARCH, params={'query': 'red cat', 'hits': hits, 'rerank': stage})


def test_mmr_orders_the_best_hits(client):
    offered = client.get('/v1/tiny').json()['rerankers']
    assert {'name': 'mmr', 'system': 'mmr'} in offered
    plain = docids(client.get(SEARCH, params={'query': 'red cat', 'hits': 12}))
    assert docids(ask(client, 'mmr@8:diversify=0')) == plain
    diverse = docids(ask(client, 'mmr@8:diversify=0.9'))
    assert diverse[0] == plain[0]
    assert sorted(diverse[:8]) == sorted(plain[:8])
    assert diverse != plain
    assert diverse[8:] == plain[8:]


def test_neighbours_of_the_best_are_found(client, graph):
    plain = docids(client.get(SEARCH, params={'query': 'red cat', 'hits': 12}))
    # One seed and its neighbours: the others stay below, in their order.
    assert docids(ask(client, 'ladr@1:adaptive,neighbours=11')) == plain
    answer = ask(client, 'monobert@12:neighbours=4')
    assert sorted(docids(answer)) == sorted(plain)
    assert docids(answer) == docids(ask(client, 'monobert@12'))
    step = answer.json()['steps'][-1]
    assert (step['step'], step['inferences']) == ('monobert@12:neighbours=4', 12)


def test_without_a_graph_the_answer_is_one_line(client):
    answer = ask(client, 'ladr@3')
    assert answer.status_code == 400
    assert 'has no graph of neighbours' in answer.text
    assert 'Traceback' not in answer.text


@pytest.fixture
def collection(tiny_checkpoint, rerankers, tmp_path):
    """A client of a service of a collection: 20 documents, every second one of the kind 'even'."""
    folder = tmp_path / 'mine'
    documents = []
    for number in range(20):
        kind = 'odd' if number % 2 else 'even'
        text = ' '.join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 5))
        documents.append({'id': f'd{number}', 'text': text, 'kind': kind})
    settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
    encoder = str(tiny_checkpoint('for-mine'))
    with Collection.open(folder, encoder=encoder, **settings) as opened:
        opened.sync(documents)
    arguments = ['neighbours', '--index', str(folder), '--neighbours', '8', '--quiet']
    assert command.run(index_command, arguments) == 0
    indexes = {'tiny': IndexSettings(path=str(folder))}
    with ready_client(ServeSettings(indexes=indexes, rerankers=[*rerankers])) as client:
        yield client


@pytest.mark.parametrize('stage', ['mmr@5', 'ladr@2:neighbours=8', 'monobert@6:neighbours=8'])
def test_a_filter_holds_for_neighbours(collection, stage):
    parameters = {'query': 'red cat', 'hits': 8, 'rerank': stage, 'filter': 'kind:odd'}
    answer = collection.get(SEARCH, params=parameters)
    found = docids(answer)
    assert len(found) == 8
    assert all(int(docid[1:]) % 2 for docid in found)
    assert all(hit['passage']['number'] == 0 for hit in answer.json()['candidates'])

"""An answer is bounded, however much is stored; clients choose which fields come with hits."""

import asyncio
import json

import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.serve.mcp import make_tools
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

N_DOCUMENTS = 45
MOST = 20_000
NOTE = 'n' * 1000


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """A collection whose documents have a long note each."""
    documents = []
    for number in range(N_DOCUMENTS):
        documents.append({'id': f'd{number}', 'text': 'cat', 'note': NOTE, 'year': number % 3})
    documents.append({'id': 'long', 'text': 'dog ' * MOST, 'year': 7})
    encoder = str(tiny_checkpoint('own'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(documents)
    return tmp_path / 'mine'


@pytest.fixture
def client(folder):
    settings = ServeSettings(
        indexes={'mine': IndexSettings(path=str(folder))}, limits=Limits(answer_bytes=MOST)
    )
    with ready_client(settings) as client:
        yield client


def fields_of(answer):
    assert answer.status_code == 200, answer.text
    return [hit['fields'] for hit in answer.json()['candidates']]


def test_a_client_chooses_the_fields_of_hits(client):
    search = '/v1/mine/search?query=cat&hits=3'
    for fields in fields_of(client.get(search)):
        assert fields.keys() == {'note', 'year'}
    for fields in fields_of(client.get(f'{search}&fields=year,unknown')):
        assert fields.keys() == {'year'}
    assert fields_of(client.get(f'{search}&fields=')) == [{}, {}, {}]
    both = client.get(f'{search}&fields=year&fields=note')
    assert all(fields.keys() == {'note', 'year'} for fields in fields_of(both))


def test_batches_comparisons_and_pools_choose_as_well(client):
    queries = {'queries': [{'text': 'cat'}], 'hits': 2, 'fields': ['year']}
    (result,) = client.post('/v1/mine/batch', json=queries).json()['results']
    assert [hit['fields'].keys() for hit in result['candidates']] == [{'year'}, {'year'}]
    sides = client.post('/v1/mine/compare', json={'query': 'cat', 'hits': 2, 'fields': []}).json()
    assert [hit['fields'] for hit in sides['b']['candidates']] == [{}, {}]
    pool = client.post('/v1/mine/pools', json={'question': 'cat', 'depth': 2, 'fields': ['year']})
    assert all(document['fields'].keys() == {'year'} for document in pool.json()['documents'])


@pytest.mark.parametrize(
    ('method', 'address', 'body', 'less'),
    [
        ('GET', 'search?query=cat&hits=45', None, "fewer 'hits'"),
        ('POST', 'batch', {'queries': [{'text': 'cat'}] * 3, 'hits': 10}, "fewer 'hits'"),
        ('POST', 'compare', {'query': 'cat', 'hits': 12}, "fewer of their 'fields'"),
        ('POST', 'pools', {'question': 'cat', 'depth': 45}, "lesser 'depth'"),
        ('GET', 'doc/long', None, "'max_doc_length'"),
    ],
)
def test_a_long_answer_is_refused_with_a_way_to_ask_for_less(client, method, address, body, less):
    refused = client.request(method, f'/v1/mine/{address}', json=body)
    assert refused.status_code == 400
    assert refused.json()['error'].startswith('the answer would have more than 20,000 bytes: ')
    assert less in refused.json()['error']


def test_what_is_asked_for_as_it_was_told_is_answered(client):
    assert len(fields_of(client.get('/v1/mine/search?query=cat&hits=45&fields=year'))) == 45
    shorter = client.get('/v1/mine/doc/long?max_doc_length=100')
    assert shorter.json()['doc']['text'] == 'dog ' * 25


def test_a_long_answer_is_not_read_to_its_end(client, monkeypatch):
    from pyserini_repbert.collection.generation import Generation

    read = []
    fields = Generation.fields

    def count(generation, docids):
        read.append(len(docids))
        return fields(generation, docids)

    monkeypatch.setattr(Generation, 'fields', count)
    assert client.get('/v1/mine/search?query=cat&hits=45').status_code == 400
    assert sum(read) == 20


def test_many_long_judgments_are_listed_by_judge_or_question(client):
    judgments = []
    for number in range(20):
        judgment = {'question': f'cat {number}', 'docid': f'd{number}', 'grade': 1}
        judgments.append({**judgment, 'judge': f'j{number}', 'comment': 'c' * 1500})
    assert client.post('/v1/mine/judgments', json={'judgments': judgments}).status_code == 200
    refused = client.get('/v1/mine/judgments')
    assert refused.status_code == 400
    assert "one 'judge' or one 'question'" in refused.json()['error']
    assert len(client.get('/v1/mine/judgments?judge=j3').json()['judgments']) == 1
    file = client.get('/v1/mine/judgments?format=jsonl')
    assert file.status_code == 400
    assert file.json()['error'].startswith('the answer would have more than 20,000 bytes: ask for ')
    assert client.get('/v1/mine/judgments?format=qrels').text.count('\n') == 20


@pytest.mark.parametrize('long', [{'question': 'q' * 2001}, {'docid': 'd' * 1001}])
def test_a_question_that_no_search_takes_is_not_stored(client, long):
    judgment = {'question': 'q', 'docid': 'd', 'grade': 1, **long}
    assert client.post('/v1/mine/judgments', json={'judgments': [judgment]}).status_code == 422


def test_tools_have_the_same_limit(client):
    async def call(name, **arguments):
        async with Client(make_tools(client.app.state.service)) as tools:
            return (await tools.call_tool(name, arguments)).data

    few = asyncio.run(call('search', query='cat', hits=3, fields=['year']))
    assert all(hit['fields'].keys() == {'year'} for hit in few['candidates'])
    with pytest.raises(ToolError, match='more than 20,000 bytes'):
        asyncio.run(call('search', query='cat', hits=45))
    with pytest.raises(ToolError, match='more than 20,000 bytes'):
        asyncio.run(call('get_document', docid='long', index='mine'))


def test_long_values_are_no_values_to_choose_from(client):
    counts = client.get('/v1/mine').json()['field_counts']
    assert counts['note'] == {'documents': N_DOCUMENTS, 'values': []}
    assert [value['value'] for value in counts['year']['values']] == ['0', '1', '2', '7']
    assert len(json.dumps(counts)) < 1000

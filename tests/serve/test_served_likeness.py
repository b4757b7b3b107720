"""A document in place of a question, over HTTP and MCP: the hits of the library, and refusals."""

import asyncio
from contextlib import ExitStack

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.serve.settings import ServeSettings

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'kind': 'guide'},
    {'id': 'guide/b', 'text': f'{LONG} moon tree.', 'kind': 'note'},
    {'id': 'c', 'text': 'the fish ate the bird in the sea', 'kind': 'guide'},
    {'id': 'd', 'text': 'cat and dog sat in the tree', 'kind': 'note'},
    {'id': 'untold', 'text': '', 'kind': 'note'},
]


@pytest.fixture
def open_mine(tiny_checkpoint, tmp_path, serving_path):
    """open(sparse) -> a client of a service of a collection, and the collection."""
    with ExitStack() as held:

        def make(sparse='none'):
            small = {'passage_tokens': 10, 'overlap': 3, 'sparse': sparse}
            encoder = str(tiny_checkpoint('encoder'))
            opened = Collection.open(tmp_path / 'mine', encoder=encoder, **small)
            collection = held.enter_context(opened)
            collection.sync(DOCUMENTS)
            return serving_path(tmp_path / 'mine', rerankers=[]), collection

        yield make


def answered(client, index, **parameters):
    answer = client.get(f'/v1/{index}/search', params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def scores(candidates):
    return {hit['docid']: hit['score'] for hit in candidates}


def test_a_bundle_answers_as_the_library(client, bundle):
    answer = answered(client, 'tiny', like='d3', hits=5, provenance=True, display=True)
    expected = DenseSearcher(bundle).more_like('d3', 5)
    assert scores(answer['candidates']) == pytest.approx(
        {hit.docid: hit.score for hit in expected}, abs=1e-5
    )
    assert [hit['docid'] for hit in answer['candidates']] == [hit.docid for hit in expected]
    assert answer['query'] == {'text': '', 'like': 'd3'}
    assert answer['judged'] is None
    assert answer['steps'][0]['inferences'] == 0, 'nothing is encoded'
    for hit in answer['candidates']:
        assert [part['match'] for part in hit['display']] == [False]


def test_a_document_of_a_collection(open_mine):
    client, collection = open_mine()
    for docid in ('guide/b', 'a'):
        answer = answered(client, 'mine', like=docid)
        expected = collection.more_like(docid)
        assert scores(answer['candidates']) == pytest.approx(
            {hit.docid: hit.score for hit in expected}, abs=1e-5
        )
        numbers = [hit['passage']['number'] for hit in answer['candidates']]
        assert numbers == [hit.excerpts[0].number for hit in expected]
    within = answered(client, 'mine', like='a', filter='kind:note')
    assert set(scores(within['candidates'])) == {'guide/b', 'd'}
    assert answered(client, 'mine', like='untold')['candidates'] == []
    # Questions are answered as before.
    assert len(answered(client, 'mine', query='cat sat')['candidates']) == 4


@pytest.mark.jvm
def test_vectors_and_words_are_fused(open_mine):
    client, collection = open_mine('bm25')
    answer = answered(client, 'mine', like='a')
    expected = {hit.docid: hit.score for hit in collection.more_like('a')}
    assert scores(answer['candidates']) == pytest.approx(expected, abs=1e-5)
    assert answer['system'] == ['dense', 'bm25']
    answer = answered(client, 'mine', like='a', system='bm25', k1=2, filter='kind:note')
    assert set(scores(answer['candidates'])) == {'guide/b', 'd'}
    answer = answered(client, 'mine', like='untold', system='bm25')
    assert answer['warnings'] == [
        "Lucene finds nothing like 'untold': no other document has a word of it"
    ]


@pytest.mark.parametrize(
    ('parameters', 'status', 'said'),
    [
        ({'like': 'd99'}, 404, "index 'tiny' has no document 'd99'"),
        ({'like': ''}, 404, "index 'tiny' has no document ''"),
        ({'like': 'd3', 'query': 'cat'}, 400, "'query' and 'like' were given: give one of them"),
        ({'like': 'd3', 'rerank': 'monobert@5'}, 400, "'rerank' reads a question, and 'like'"),
        ({'like': 'd3', 'explain': 'monobert'}, 400, "'explain' reads a question, and 'like'"),
        ({}, 400, 'the query is empty: give a question'),
    ],
)
def test_what_is_refused(client, parameters, status, said):
    answer = client.get('/v1/tiny/search', params=parameters)
    assert answer.status_code == status
    assert answer.json()['error'].startswith(said)


def test_mcp_takes_a_document(index_settings, client):
    fastmcp = pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    from pyserini_repbert.serve.mcp import make_mcp

    settings = ServeSettings(indexes={'tiny': index_settings}, rerankers=[])

    async def search(**arguments):
        async with fastmcp.Client(make_mcp(settings)) as mcp:
            answer = await mcp.call_tool('search', arguments, raise_on_error=False)
            return answer.content[0].text if answer.is_error else answer.data

    found = asyncio.run(search(like='d3', hits=5))
    expected = answered(client, 'tiny', like='d3', hits=5)
    assert found['candidates'] == expected['candidates']
    assert asyncio.run(search(like='d99')) == "index 'tiny' has no document 'd99'"
    assert asyncio.run(search(hits=3)) == 'the query is empty: give a question'

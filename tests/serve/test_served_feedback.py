"""`prf` over HTTP and MCP: the hits of the library, and what is refused."""

import asyncio

import pytest
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

QUERY = 'cat sat on the mat'
WORDS = ('cat', 'dog', 'fish', 'bird', 'moon', 'tree')


def answered(client, index, **parameters):
    """{docid: score} of six hits."""
    parameters = {'query': QUERY, 'hits': 6, **parameters}
    answer = client.get(f'/v1/{index}/search', params=parameters)
    assert answer.status_code == 200, answer.text
    return {hit['docid']: hit['score'] for hit in answer.json()['candidates']}


def ranked(folder, **fields):
    """{docid: score} of six hits, as the library gives them."""
    pipeline = open_pipeline(PipelineSpec(index=str(folder), **fields)).pipeline
    return {hit.docid: hit.score for hit in pipeline.search(QUERY, 6)}


@pytest.mark.parametrize('prf', ['average', 'rocchio:depth=4,alpha=0.4,beta=0.6'])
def test_a_bundle_answers_as_the_library(client, bundle, prf):
    found = answered(client, 'tiny', prf=prf)
    assert found == pytest.approx(ranked(bundle, prf=prf), abs=1e-5)
    assert found != answered(client, 'tiny')
    # Nothing stays behind in the searcher that all requests share.
    assert answered(client, 'tiny') == pytest.approx(ranked(bundle), abs=1e-5)


def test_feedback_within_a_filter(tiny_checkpoint, tmp_path):
    documents = [
        {'id': f'd{number}', 'text': f'{word} sat on the mat', 'even': number % 2}
        for number, word in enumerate(WORDS)
    ]
    folder = tmp_path / 'mine'
    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(folder, encoder=encoder, sparse='none') as collection:
        collection.sync(documents)
    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))}, rerankers=[])
    with ready_client(settings) as client:
        asked = {'prf': 'average:depth=2', 'filter': 'even:1'}
        found = answered(client, 'mine', **asked)
    assert list(found) == list(ranked(folder, **asked))
    assert found == pytest.approx(ranked(folder, **asked), abs=1e-5)


def test_a_comparison_and_a_batch_take_feedback(client):
    prf = 'average'
    expected = list(answered(client, 'tiny', prf=prf))
    body = {'query': QUERY, 'hits': 6, 'a': {}, 'b': {'prf': prf}}
    compared = client.post('/v1/tiny/compare', json=body).json()
    assert [hit['docid'] for hit in compared['b']['candidates']] == expected
    body = {'queries': [{'text': QUERY}], 'hits': 6, 'prf': prf}
    (batch,) = client.post('/v1/tiny/batch', json=body).json()['results']
    assert [hit['docid'] for hit in batch['candidates']] == expected


@pytest.mark.parametrize(
    ('prf', 'said'),
    [
        ('mean', "feedback method 'mean' is unknown: expected one of average, rocchio"),
        ('rocchio:depth=0', 'depth has to be a number'),
        ('average:alpha=1', 'expected average:depth='),
        ('average:depth=21', "'prf' reads 21 hits of a query, expected at most 20"),
        ('', "feedback method '' is unknown"),
    ],
)
def test_what_is_refused(serving, prf, said):
    client = serving(limits=Limits(hits=20))
    answer = client.get('/v1/tiny/search', params={'query': QUERY, 'prf': prf})
    assert answer.status_code == 400
    assert said in answer.json()['error']
    assert '\n' not in answer.json()['error']


def test_mcp_takes_feedback(index_settings, client):
    fastmcp = pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    from pyserini_repbert.serve.mcp import make_mcp

    settings = ServeSettings(indexes={'tiny': index_settings}, rerankers=[])

    async def search(prf):
        async with fastmcp.Client(make_mcp(settings)) as mcp:
            arguments = {'query': QUERY, 'hits': 6, 'prf': prf}
            answer = await mcp.call_tool('search', arguments, raise_on_error=False)
            return answer.content[0].text if answer.is_error else answer.data

    found = asyncio.run(search('average'))
    expected = answered(client, 'tiny', prf='average')
    assert {hit['docid']: hit['score'] for hit in found['candidates']} == expected
    refusal = asyncio.run(search('mean'))
    assert refusal.startswith("feedback method 'mean' is unknown")

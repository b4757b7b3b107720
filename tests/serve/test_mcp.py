"""The MCP tools, by a client in this process and over stdio: Pyserini's names, and rerank and
explain.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('fastmcp', reason='the serve extra is not installed')

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from opened_services import ACCEPTED, INITIALIZE

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import LineStart, Origin
from pyserini_repbert.serve.mcp import make_mcp
from pyserini_repbert.serve.reading import lines_of
from pyserini_repbert.serve.settings import ServeSettings

PYSERINIS = {
    'search',
    'get_document',
    'list_indexes',
    'get_index',
    'fuse_search_results',
    'get_qrels',
    'eval_hits',
}


@dataclass(frozen=True)
class Call:
    """A call of a tool with its arguments."""

    tool: str
    arguments: dict


@pytest.fixture
def call(index_settings, rerankers):
    """call(tool, **arguments) -> its result."""
    settings = ServeSettings(indexes={'tiny': index_settings}, rerankers=[*rerankers])

    async def call_tool(tool, arguments):
        async with Client(make_mcp(settings)) as client:
            return (await client.call_tool(tool, arguments)).data

    return lambda tool, **arguments: asyncio.run(call_tool(tool, arguments))


def test_pyserinis_tools_are_there_with_ours(index_settings):
    async def list_tools():
        async with Client(make_mcp(ServeSettings(indexes={'tiny': index_settings}))) as client:
            return await client.list_tools()

    tools = asyncio.run(list_tools())
    assert {tool.name for tool in tools} == PYSERINIS | {'rerank', 'explain'}
    assert all(tool.description for tool in tools)


def test_a_search_answers_as_http_does(call, client):
    answer = call('search', query='cat sat', index='tiny', hits=3)
    expected = client.get('/v1/tiny/search', params={'query': 'cat sat', 'hits': 3}).json()
    assert answer['query'] == {'text': 'cat sat'}
    assert answer['candidates'] == expected['candidates']


def test_a_question_may_have_pyserinis_form(call):
    answer = call('search', query={'query_txt': 'cat sat'}, hits=3)
    assert answer['query'] == {'text': 'cat sat'}


def test_settings_given_one_by_one_replace_those_of_a_pipeline(call):
    pipeline = {'rerank': ['epic@2'], 'system': ['dense']}
    single = call('search', query='cat sat', hits=3, rerank=['monobert@3'], pipeline=pipeline)
    whole = call('search', query='cat sat', hits=3, pipeline={'rerank': ['monobert@3']})
    assert single['rerank'] == ['monobert@3']
    assert single['candidates'] == whole['candidates']


def test_a_document_is_its_text_or_as_it_is_stored(call):
    text = call('get_document', docid='d3', index='tiny')
    raw = call('get_document', docid='d3', index='tiny', parse=False)
    assert raw == f'{{"id": "d3", "contents": "{text}"}}'


def test_lines_of_a_document_are_given_alone(call):
    text = call('get_document', docid='d3', index='tiny')
    assert call('get_document', docid='d3', index='tiny', last_line=1) == text
    assert call('get_document', docid='d3', index='tiny', first_line=2) == ''
    with pytest.raises(ToolError, match='first_line'):
        call('get_document', docid='d3', index='tiny', first_line=0)


def test_lines_have_the_numbers_of_the_file():
    text = 'one\ntwo\nthree'
    origin = Origin('a.md', lines=(LineStart(0, 5), LineStart(8, 9)))
    store = SimpleNamespace(
        stored_docid=str,
        documents=lambda docids: [Document('a.md', text)],
        origins=lambda docids: [origin],
    )
    index = SimpleNamespace(alias='mine', store=store)
    assert lines_of(index, 'a.md', 5, 6) == 'one\ntwo'
    assert lines_of(index, 'a.md', 6, 9) == 'two\nthree'
    assert lines_of(index, 'a.md', 1, 4) == ''


@pytest.mark.parametrize(('index_type', 'names'), [('', ['tiny']), ('dense', ['tiny']), ('tf', [])])
def test_indexes_are_listed_by_type(index_type, names, call):
    assert call('list_indexes', index_type=index_type) == names


def test_an_index_is_described(call):
    about = call('get_index', index_name='tiny')
    assert about['passages'] == 12
    assert about['systems'] == ['dense']


def test_two_rankings_are_interleaved(call):
    fused = call(
        'fuse_search_results', results1={'a': 2, 'b': 1}, results2={'c': 9, 'a': 8}, hits=2
    )
    assert fused == {'a': 1.0, 'c': 0.5}


def test_judgments_are_texts(call):
    assert call('get_qrels', index_name='tiny', query_id='q1') == {'d1': '1', 'd2': '0'}


@pytest.mark.parametrize(
    ('metric', 'hits', 'value'),
    [
        ('ndcg', {'d1': 2, 'd9': 1}, 1.0),
        ('recall', {'d9': 1}, 0.0),
        ('recip_rank', {'d9': 2, 'd1': 1}, 0.5),
    ],
)
def test_hits_are_evaluated(metric, hits, value, call):
    topic = {'index_name': 'tiny', 'query_id': 'q1'}
    assert call('eval_hits', metric=metric, hits=hits, cutoff=5, **topic) == value


DOCIDS = ['d0', 'd1', 'd2']


def test_reranked_hits_are_in_the_order_of_their_scores(call):
    hits = call('rerank', query='cat sat', docids=DOCIDS, index='tiny', reranker='monobert')
    explanation = call('explain', query='cat sat', docids=DOCIDS, index='tiny', model='monobert')
    score_of = dict(zip(DOCIDS, explanation['scores'], strict=True))
    assert [hit['docid'] for hit in hits] == sorted(DOCIDS, key=lambda docid: -score_of[docid])
    assert [hit['rank'] for hit in hits] == [1, 2, 3]


def test_duobert_takes_a_method(call):
    """By 'binary', a score is how many of the two others a passage beats."""
    hits = call('rerank', query='cat sat', docids=DOCIDS, index='tiny', reranker='duobert:binary')
    assert {hit['score'] for hit in hits} <= {0.0, 1.0, 2.0}


@pytest.mark.slow
def test_over_stdio(index_settings, tmp_path):
    root = Path(__file__).parents[2]
    arguments = [
        '-m',
        'pyserini_repbert.serve',
        '--index',
        f'tiny={index_settings.location}',
        '--rerankers',
        '--mcp',
    ]
    environment = {**os.environ, 'PYTHONPATH': str(root)}

    async def work():
        transport = StdioTransport(sys.executable, arguments, env=environment, cwd=str(tmp_path))
        async with Client(transport, timeout=120) as client:
            return (await client.call_tool('search', {'query': 'red fish', 'hits': 2})).data

    assert len(asyncio.run(work())['candidates']) == 2


def test_over_http(serving_with_mcp):
    answer = serving_with_mcp.post('/mcp', json=INITIALIZE, headers=ACCEPTED)
    assert answer.status_code == 200
    assert '"serverInfo"' in answer.text
    assert 'pyserini_repbert' in answer.text


def test_there_are_no_sessions_to_pile_up(serving_with_mcp):
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list', 'params': {}}
    answer = serving_with_mcp.post('/mcp', json=message, headers=ACCEPTED)
    assert answer.status_code == 200
    assert '"get_document"' in answer.text
    assert 'mcp-session-id' not in answer.headers


@pytest.mark.parametrize('method', ['GET', 'HEAD'])
def test_nobody_listens_without_a_session(serving_with_mcp, method):
    """Of GET, 404 said that there is nothing at this address."""
    answer = serving_with_mcp.request(method, '/mcp', headers={'Accept': 'text/event-stream'})
    assert answer.status_code == 405
    assert answer.headers['Allow'] == 'DELETE, POST'


SCORES = {'a': 1.0}
REFUSED = [
    (Call('search', {'query': 'cat', 'hits': 0}), "parameter 'hits': Input should be greater"),
    (Call('search', {}), 'the query is empty: give a question'),
    (
        Call('search', {'query': 'cat', 'pipeline': {'systm': []}}),
        "parameter 'pipeline.systm': Extra",
    ),
    (Call('search', {'query': 'cat', 'alpha': 7}), "parameter 'alpha': Input should be less"),
    (
        Call('get_qrels', {'index_name': 'tiny', 'query_id': 'q9'}),
        "no judgments for topic 'q9'",
    ),
    (
        Call(
            'eval_hits',
            {'index_name': 'tiny', 'metric': 'ndcg', 'query_id': 'q1', 'hits': {'d1': 'NaN'}},
        ),
        "parameter 'hits.d1': Input should be a finite number",
    ),
    (
        Call('fuse_search_results', {'results1': SCORES | {'b': 'inf'}, 'results2': SCORES}),
        "parameter 'results1.b': Input should be a finite number",
    ),
]


def test_refusals_are_one_line_for_the_client_and_in_the_log(index_settings, capfd):
    settings = ServeSettings(indexes={'tiny': index_settings})

    async def answer_all():
        answers = []
        async with Client(make_mcp(settings)) as client:
            for call, _ in REFUSED:
                answer = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
                answers.append(answer)
        return answers

    answers = asyncio.run(answer_all())
    logged = capfd.readouterr().err
    for answer, (call, says) in zip(answers, REFUSED, strict=True):
        assert answer.is_error, call
        text = answer.content[0].text
        assert says in text, call
        assert '\n' not in text, call
        assert 'pydantic' not in text, call
    assert 'Traceback' not in logged
    assert '╭' not in logged
    assert len([line for line in logged.splitlines() if 'tool' in line]) == len(REFUSED)


def test_files_with_the_same_text_are_one_hit(tmp_path, tiny_checkpoint):
    folder = tmp_path / 'docs'
    for name in ('a.md', 'b.md'):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text('# Cat\n\nA cat sat.\n')
    (folder / 'c.md').write_text('# Dog\n\nA dog ran.\n')
    checkpoint = str(tiny_checkpoint())
    with Collection.open(tmp_path / 'mine', encoder=checkpoint, sparse='none') as collection:
        collection.sync(folder)
    settings = ServeSettings(indexes={'mine': {'path': str(tmp_path / 'mine')}})

    async def search():
        async with Client(make_mcp(settings)) as client:
            return (await client.call_tool('search', {'query': 'cat', 'hits': 2})).data

    candidates = asyncio.run(search())['candidates']
    also_in = {hit['docid']: hit.get('also_in') for hit in candidates}
    assert also_in == {'a.md': ['b.md'], 'c.md': None}
    assert [hit['rank'] for hit in candidates] == [1, 2]

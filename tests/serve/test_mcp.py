"""The MCP tools, by a client in this process and over stdio: Pyserini's names, and rerank and
explain.
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip('fastmcp', reason='the serve extra is not installed')

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from pyserini_repbert.serve.mcp import make_mcp
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


@pytest.fixture
def call(index_settings, rerankers):
    """call(tool, arguments) -> its result; several as call((tool, arguments), …) -> a list."""

    settings = ServeSettings(indexes={'tiny': index_settings}, rerankers=[*rerankers])

    def called(*calls):
        async def work():
            async with Client(make_mcp(settings)) as client:
                return [(await client.call_tool(name, given)).data for name, given in calls]

        return asyncio.run(work())

    return called


def test_pyserinis_tools_are_there(index_settings):
    async def names():
        async with Client(make_mcp(ServeSettings(indexes={'tiny': index_settings}))) as client:
            tools = await client.list_tools()
            assert all(tool.description for tool in tools)
            return {tool.name for tool in tools}

    assert asyncio.run(names()) == PYSERINIS | {'rerank', 'explain'}


def test_searching(call):
    found, by_dict, text, raw, names, none, about = call(
        ('search', {'query': 'cat sat', 'index': 'tiny', 'hits': 3}),
        ('search', {'query': {'query_txt': 'cat sat'}, 'hits': 3}),
        ('get_document', {'docid': 'd3', 'index': 'tiny'}),
        ('get_document', {'docid': 'd3', 'index': 'tiny', 'parse': False}),
        ('list_indexes', {'index_type': 'dense'}),
        ('list_indexes', {'index_type': 'tf'}),
        ('get_index', {'index_name': 'tiny'}),
    )
    assert len(found['candidates']) == 3 and found['query'] == {'text': 'cat sat'}
    assert by_dict['candidates'] == found['candidates']
    assert raw == f'{{"id": "d3", "contents": "{text}"}}'
    assert (names, none) == (['tiny'], [])
    assert about['passages'] == 12 and about['systems'] == ['dense']


def test_settings_of_a_search_are_given_one_by_one_or_as_a_pipeline(call):
    asked = {'query': 'cat sat', 'hits': 3}
    single, whole = call(
        (
            'search',
            asked
            | {'rerank': ['monobert@3'], 'pipeline': {'rerank': ['epic@2'], 'system': ['dense']}},
        ),
        ('search', asked | {'pipeline': {'rerank': ['monobert@3']}}),
    )
    assert single['candidates'] == whole['candidates'] and single['rerank'] == ['monobert@3']


def test_fusing_and_evaluating(call):
    fused, grades, ndcg, recall, rank = call(
        (
            'fuse_search_results',
            {'results1': {'a': 2, 'b': 1}, 'results2': {'c': 9, 'a': 8}, 'hits': 2},
        ),
        ('get_qrels', {'index_name': 'tiny', 'query_id': 'q1'}),
        (
            'eval_hits',
            {'index_name': 'tiny', 'metric': 'ndcg', 'query_id': 'q1', 'hits': {'d1': 2, 'd9': 1}},
        ),
        (
            'eval_hits',
            {'index_name': 'tiny', 'metric': 'recall', 'query_id': 'q1', 'hits': {'d9': 1}},
        ),
        (
            'eval_hits',
            {
                'index_name': 'tiny',
                'metric': 'recip_rank',
                'query_id': 'q1',
                'hits': {'d9': 2, 'd1': 1},
                'cutoff': 5,
            },
        ),
    )
    assert fused == {'a': 1.0, 'c': 0.5}
    assert grades == {'d1': '1', 'd2': '0'}
    assert (ndcg, recall, rank) == (1.0, 0.0, 0.5)


def test_reranking_and_explaining(call):
    docids = ['d0', 'd1', 'd2']
    asked = {'query': 'cat sat', 'docids': docids, 'index': 'tiny'}
    mono, duo, scores = call(
        ('rerank', asked | {'reranker': 'monobert'}),
        ('rerank', asked | {'reranker': 'duobert:binary'}),
        ('explain', asked | {'model': 'monobert'}),
    )
    by_docid = dict(zip(docids, scores['scores'], strict=True))
    assert [hit['docid'] for hit in mono] == sorted(docids, key=lambda docid: -by_docid[docid])
    assert sorted(hit['score'] for hit in duo) == sorted(float(round(hit['score'])) for hit in duo)
    assert sum(hit['score'] for hit in duo) <= 6


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
    message = {
        'jsonrpc': '2.0',
        'id': 1,
        'method': 'initialize',
        'params': {
            'protocolVersion': '2025-06-18',
            'capabilities': {},
            'clientInfo': {'name': 't', 'version': '1'},
        },
    }
    accepted = {'accept': 'application/json, text/event-stream'}
    answer = serving_with_mcp.post('/mcp', json=message, headers=accepted)
    assert (
        answer.status_code == 200
        and '"serverInfo"' in answer.text
        and 'pyserini_repbert' in answer.text
    )


def test_there_are_no_sessions_to_pile_up(serving_with_mcp):
    accepted = {'accept': 'application/json, text/event-stream'}
    message = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list', 'params': {}}
    answer = serving_with_mcp.post('/mcp', json=message, headers=accepted)
    assert answer.status_code == 200 and '"get_document"' in answer.text
    assert 'mcp-session-id' not in answer.headers


REFUSED = [
    ('search', {'query': 'cat', 'hits': 0}, "parameter 'hits': Input should be greater"),
    ('search', {}, "parameter 'query': Missing required argument (nothing was given)"),
    ('search', {'query': 'cat', 'pipeline': {'systm': []}}, "parameter 'pipeline.systm': Extra"),
    ('search', {'query': 'cat', 'alpha': 7}, "parameter 'alpha': Input should be less"),
    ('get_qrels', {'index_name': 'tiny', 'query_id': 'q9'}, "no judgments for topic 'q9'"),
    (
        'eval_hits',
        {'index_name': 'tiny', 'metric': 'ndcg', 'query_id': 'q1', 'hits': {'d1': 'NaN'}},
        "parameter 'hits.d1': Input should be a finite number",
    ),
    (
        'fuse_search_results',
        {'results1': {'a': 1.0, 'b': 'inf'}, 'results2': {'a': 1.0}},
        "parameter 'results1.b': Input should be a finite number",
    ),
]


def test_refusals_are_one_line_for_the_client_and_in_the_log(index_settings, capfd):
    settings = ServeSettings(indexes={'tiny': index_settings})

    async def work():
        async with Client(make_mcp(settings)) as client:
            return [
                await client.call_tool(name, given, raise_on_error=False)
                for name, given, _ in REFUSED
            ]

    answers = asyncio.run(work())
    logged = capfd.readouterr().err
    for answer, (name, _, says) in zip(answers, REFUSED, strict=True):
        text = answer.content[0].text
        assert answer.is_error and says in text and '\n' not in text, (name, text)
        assert 'pydantic' not in text
    assert 'Traceback' not in logged and '╭' not in logged
    lines = [line for line in logged.splitlines() if 'tool' in line]
    assert len(lines) == len(REFUSED)

"""/v1/fuse and /v1/evaluate: runs that clients send."""

from __future__ import annotations

import json

import pytest

from pyserini_repbert.serve.settings import Limits

A = '1 Q0 x 1 3 a\n1 Q0 y 2 2 a\n2 Q0 x 1 1 a\n'
B = {'1': [{'docid': 'z', 'score': 1.5}, {'docid': 'y', 'score': 9}]}


def test_fusing_a_file_and_hits(client):
    body = {'runs': [{'name': 'A', 'text': A}, {'name': 'B', 'rankings': B}], 'provenance': True}
    found = client.post('/v1/fuse', json=body).json()
    assert found['runs'] == ['A', 'B'] and found['method'] == 'interleave'
    assert [hit['docid'] for hit in found['rankings']['1']] == ['x', 'y', 'z']  # A's first, B's first, A's y is there
    assert [hit['docid'] for hit in found['rankings']['2']] == ['x']
    assert found['rankings']['1'][1]['provenance'] == [
        {'ranking': 'A', 'rank': 2, 'score': 2.0},
        {'ranking': 'B', 'rank': 1, 'score': 9.0},
    ]
    assert found['rankings']['1'][2]['provenance'][0] == {'ranking': 'A', 'rank': None, 'score': None}


def test_reciprocal_rank_fusion(client):
    body = {'runs': [{'text': A}, {'rankings': B}], 'method': 'rrf', 'rrf_k': 1, 'hits': 2}
    hits = client.post('/v1/fuse', json=body).json()['rankings']['1']
    assert [(hit['docid'], hit['score']) for hit in hits] == [('y', pytest.approx(1 / 3 + 1 / 2)), ('x', 1 / 2)]


def test_evaluating_two_runs(client):
    runs = [
        {'name': 'old', 'text': 'q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\nq2 Q0 d9 1 1 t\n'},
        {'name': 'new', 'text': 'q1 Q0 d2 1 2 t\nq1 Q0 d1 2 1 t\nq2 Q0 d3 1 1 t\n'},
    ]
    body = {'runs': runs, 'index': 'tiny', 'measures': ['MRR@10', 'R@10'], 'show': 1}
    found = client.post('/v1/evaluate', json=body).json()
    assert found['judged_topics'] == 2 and found['baseline'] == 'old' and found['measures'] == ['MRR@10', 'R@10']
    assert {own['run']: own['means'] for own in found['runs']} == {
        'old': {'MRR@10': 0.5, 'R@10': 0.5},
        'new': {'MRR@10': 0.75, 'R@10': 1.0},
    }
    assert [(topic['qid'], topic['difference']) for topic in found['topics']] == [('q2', 1.0), ('q1', -0.5)]
    first = found['topics'][0]
    assert first['text'] == 'red fish in the sea' and first['relevant'] == 1
    assert first['rankings'] == {
        'old': [{'docid': 'd9', 'score': 1.0, 'grade': None}],
        'new': [{'docid': 'd3', 'score': 1.0, 'grade': 2}],
    }
    (test,) = [own for own in found['comparisons'] if own['measure'] == 'MRR@10']
    assert (test['wins'], test['ties'], test['losses']) == (1, 0, 1) and test['difference'] == 0.25


def test_evaluating_with_qrels_of_ones_own(client):
    body = {'runs': [{'text': A}], 'qrels': '1 0 y 1\n', 'measures': ['MRR@10']}
    found = client.post('/v1/evaluate', json=body).json()
    assert found['runs'] == [{'run': 'run 1', 'means': {'MRR@10': 0.5}, 'topics_without_hits': 0}]
    assert found['comparisons'] == []


def test_a_difference_without_variance_is_valid_json(client):
    qrels = '1 0 x 1\n2 0 x 1\n'
    runs = [{'text': '1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n'}, {'text': '1 Q0 x 1 2 t\n2 Q0 x 1 2 t\n'}]
    answer = client.post('/v1/evaluate', json={'runs': runs, 'qrels': qrels, 'measures': ['MRR@10']})
    assert answer.status_code == 200 and answer.json()['comparisons'][0]['t'] is None


BAD = [
    ('fuse', {'runs': [{'name': 'mine', 'text': 'one two\n'}]}, 400, 'mine:1:'),
    ('fuse', {'runs': [{'name': 'a', 'text': A}, {'name': 'a', 'text': A}]}, 400, "two runs have the name 'a'"),
    ('fuse', {'runs': [{'name': 'a'}]}, 400, 'give either its text, or its rankings'),
    ('fuse', {'runs': [{'rankings': {'1': [{'docid': 'a b', 'score': 1}]}}]}, 400, 'a b'),
    ('fuse', {'runs': [{'rankings': {'1': [{'docid': 'a', 'score': 1}] * 2}}]}, 400, 'twice'),
    ('fuse', {'runs': [{'rankings': {'1': [{'docid': 'a'}]}}]}, 422, 'score'),
    ('fuse', {'runs': []}, 422, 'runs'),
    ('fuse', {'runs': [{'text': A}], 'metod': 'rrf'}, 422, 'metod'),
    ('fuse', {'runs': [{'text': A}], 'method': 'rff'}, 422, 'rrf'),
    ('fuse', {'runs': [{'text': A}], 'method': 'interpolation'}, 400, 'exactly two'),
    ('evaluate', {'runs': [{'text': A}]}, 400, "give 'qrels', or an 'index'"),
    ('evaluate', {'runs': [{'text': A}], 'index': 'tinny'}, 404, "did you mean 'tiny'"),
    ('evaluate', {'runs': [{'text': A}], 'qrels': 'x\n'}, 400, 'qrels:1:'),
    ('evaluate', {'runs': [{'text': A}], 'qrels': '1 0 x 1\n', 'measures': ['nDGC@10']}, 400, 'nDCG'),
    ('evaluate', {'runs': [{'text': '\ud800'}], 'qrels': '1 0 x 1\n'}, 422, 'surrogate'),
]


def test_a_low_limit_of_hits_refuses_nobody_who_did_not_ask(serving):
    client = serving(limits=Limits(hits=3))
    assert client.post('/v1/fuse', json={'runs': [{'text': A}, {'text': A}]}).status_code == 200
    for address in ('search?query=cat', 'cost?query=cat&rerank=monobert@3'):
        assert client.get(f'/v1/tiny/{address}').status_code == 200, address
    assert client.post('/v1/tiny/batch', json={'queries': [{'text': 'cat'}]}).status_code == 200
    assert client.post('/v1/tiny/compare', json={'query': 'cat', 'a': {}, 'b': {}}).status_code == 200
    assert client.post('/v1/fuse', json={'runs': [{'text': A}, {'text': A}], 'hits': 4}).status_code == 400


def test_what_cannot_be_taken(client):
    headers = {'content-type': 'application/json'}
    wrong = []
    for address, body, status, says in BAD:
        answer = client.post(f'/v1/{address}', content=json.dumps(body), headers=headers)
        if answer.status_code != status or says not in answer.json()['error']:
            wrong.append((address, body, answer.status_code, answer.text))
    assert wrong == []

"""Bad requests: the right status, one JSON error that says what to do, and the service goes on."""

import json
import logging
import re

import pytest
from starlette.testclient import TestClient

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import Limits, ServeSettings, read_keys

SEARCH = '/v1/tiny/search?query=cat'


BAD_ADDRESSES = [
    ('/v1/tinny/search?query=cat', 404, "did you mean 'tiny'"),
    (f'{SEARCH}&system=dens', 404, "did you mean 'dense'"),
    (f'{SEARCH}&system=dense&system=dense', 400, 'twice'),
    (f'{SEARCH}&rerank=monobret@3', 404, "did you mean 'monobert'"),
    (f'{SEARCH}&rerank=monobert', 400, 'NAME@K'),
    (f'{SEARCH}&rerank=monobert@201', 400, 'at most 200'),
    (f'{SEARCH}&rerank=duobert@100', 400, 'at most 5,000'),
    (f'{SEARCH}&rerank=monobert@3&rerank=duobert@4', 400, 'at most as many'),
    (f'{SEARCH}&rerank=duobert@4:max-length=9', 400, 'not open to clients'),
    (f'{SEARCH}&rerank=epic@4:index=/etc', 400, 'not open to clients'),
    (f'{SEARCH}&rerank=/etc@4', 404, 'there is no reranker'),
    (f'{SEARCH}&alpha=0.3', 400, "alpha is for 'interpolation'"),
    (f'{SEARCH}&k1=1', 400, "'bm25' alone"),
    (f'{SEARCH}&hits=1000000', 400, 'at most 1000'),
    (f'{SEARCH}&hits=', 400, 'hits'),
    (f'{SEARCH}&hist=3', 400, "did you mean 'hits'"),
    ('/v1/tiny/search', 400, 'query'),
    ('/v1/tiny/search?query=%20%09', 400, 'empty'),
    ('/v1/tiny/search?query=' + 'x' * 50_000, 400, 'at most 2,000'),
    ('/v1/tiny/search?query=%FF', 400, 'UTF-8'),
    ('/v1/tiny/search?query=cat&system=' + 'dense,' * 9, 400, 'at most 8 items'),
    ('/v1/tiny/doc/nowhere', 404, "no document 'nowhere'"),
    ('/v1/tiny/doc/a/b%20c%2Fd', 404, "no document 'a/b c/d'"),
    ('/v1/tiny/doc/../../etc/passwd', 404, ''),
    ('/v1/tiny/doc/..%2f..%2fetc%2fpasswd', 404, ''),
    ('/v1/tiny/qrels/q9', 404, "'q9'"),
    ('/v1/progress/nobody', 404, 'being reranked'),
    ('/nowhere', 404, '/docs'),
]


def _right(answer, status, says):
    """Whether an answer is one JSON error of this status, in one short line, that says this."""
    error = answer.json()['error']
    shape = answer.status_code == status and list(answer.json()) == ['error']
    return shape and says in error and '\n' not in error and len(error) < 1000


def test_bad_addresses(client):
    """One service answers all of them."""
    answers = [(client.get(address), status, says) for address, status, says in BAD_ADDRESSES]
    assert [
        (str(own.url)[:100], own.status_code, own.text[:300])
        for own, *true in answers
        if not _right(own, *true)
    ] == []
    assert client.get(SEARCH).status_code == 200


BAD_BODIES = [
    ('/v1/tiny/batch', b'{', 'application/json', 400, 'not JSON'),
    ('/v1/tiny/batch', b'\xff\xfe', 'application/json', 400, ''),
    ('/v1/tiny/batch', b'[' * 100_000, 'application/json', 400, ''),
    ('/v1/tiny/batch', b'{}', 'application/json', 422, 'queries'),
    ('/v1/tiny/batch', b'query=cat', 'application/x-www-form-urlencoded', 422, 'Content-Type'),
    ('/v1/tiny/batch', b'{"queries": [{"text": "\\ud800"}]}', 'application/json', 400, 'surrogate'),
    (
        '/v1/tiny/batch',
        b'{"queries": [{"text": "cat"}], "hits": 1e400}',
        'application/json',
        422,
        'hits',
    ),
    (
        '/v1/tiny/batch',
        b'{"queries": [{"text": "cat"}], "alpha": NaN}',
        'application/json',
        422,
        'alpha',
    ),
    (
        '/v1/tiny/batch',
        b'{"queries": [{"text": "cat"}], "hits": 5000}',
        'application/json',
        400,
        'at most 1000',
    ),
    ('/v1/tiny/compare', b'{"query": "cat", "a": {"systm": []}}', 'application/json', 422, 'systm'),
    (
        '/v1/tiny/batch',
        b'{"hits": 1, "hits": 1}',
        'Application/Json; q=1',
        400,
        "the body: the key 'hits' is there",
    ),
    (
        '/v1/tiny/compare',
        b'{"query": "a", "b": {"k1": 1, "k1": 1}}',
        'application/a+json',
        400,
        "'k1' is there twice",
    ),
    ('/v1/tiny/batch', b'{"hits": 1, "hits": 2}', 'text/json', 422, 'Input should be a valid'),
    ('/v1/tiny/batch', b'', 'application/json', 422, 'the body: Field required'),
    ('/v1/tiny/search', b'', 'application/json', 405, 'POST'),
]


def test_bad_bodies(client):
    """One service answers all of them."""
    answers = [
        (client.post(address, content=content, headers={'content-type': kind}), *true)
        for address, content, kind, *true in BAD_BODIES
    ]
    assert [
        (str(own.url), own.status_code, own.text[:300])
        for own, *true in answers
        if not _right(own, *true)
    ] == []
    assert client.get(SEARCH).status_code == 200


def test_too_many_queries_and_too_long_bodies(serving):
    client = serving(Limits(batch_queries=2, body_bytes=200))
    queries = [{'text': 'cat'}] * 3
    answer = client.post('/v1/tiny/batch', json={'queries': queries})
    assert answer.status_code == 400 and 'at most 2' in answer.json()['error']
    answer = client.post('/v1/tiny/batch', json={'queries': [{'text': 'x' * 300}]})
    assert answer.status_code == 413 and '200 bytes are read' in answer.json()['error']

    def chunks():
        for _ in range(50):
            yield b'x' * 50

    answer = client.post(
        '/v1/tiny/batch', content=chunks(), headers={'content-type': 'application/json'}
    )
    assert answer.status_code == 413 and 'too long' in answer.json()['error']


def test_a_low_limit_of_hits_refuses_nobody_who_did_not_ask(serving):
    client = serving(limits=Limits(hits=3))
    assert client.get(SEARCH).status_code == 200
    assert client.post('/v1/tiny/batch', json={'queries': [{'text': 'cat'}]}).status_code == 200
    assert (
        client.post('/v1/tiny/compare', json={'query': 'cat', 'a': {}, 'b': {}}).status_code == 200
    )


def test_beyond_the_queue_the_answer_is_429(serving):
    client = serving(Limits(waiting=1))
    service = client.app.state.service
    service.queues['dense'].max_waiting = 0
    answer = client.get(SEARCH)
    assert answer.status_code == 429 and answer.headers['retry-after'] == '1'
    assert 'try again' in answer.json()['error']
    service.queues['dense'].max_waiting = 1
    assert client.get(SEARCH).status_code == 200


def test_too_late_is_504_and_the_queue_is_free_again(serving):
    client = serving(Limits(rerank_seconds=0.001))
    answer = client.get(f'{SEARCH}&rerank=duobert@12')
    assert answer.status_code == 504 and 'no answer within' in answer.json()['error']
    assert client.get(SEARCH).status_code == 200


def test_a_fault_of_the_service_is_one_json_error_without_its_reason(client, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError('secret')

    index = client.app.state.service.indexes['tiny']
    monkeypatch.setattr(index, 'ranker', broken)
    answer = client.get(SEARCH)
    assert answer.status_code == 500 and list(answer.json()) == ['error']
    assert 'secret' not in answer.text and answer.headers['x-request-id'] in answer.json()['error']
    assert 'secret' in caplog.text


def test_keys(serving, tmp_path):
    keys = tmp_path / 'keys.txt'
    keys.write_text('schl\u00fcssel\n', encoding='utf-8')
    with pytest.raises(InputError, match='an API key has to be ASCII'):
        ServeSettings.of(api_keys=read_keys(keys))
    keys.write_text('first-key\n# two of them\n\nsecond-key\n', encoding='utf-8-sig')
    client = serving(api_keys=[*read_keys(keys)])
    for headers in (
        {},
        {'x-api-key': 'wrong'},
        {'authorization': 'Bearer first-kez'},
        {'authorization': 'first-key'},
    ):
        answer = client.get(SEARCH, headers=headers)
        assert answer.status_code == 401 and list(answer.json()) == ['error'], headers
    for headers in ({'x-api-key': 'first-key'}, {'authorization': 'Bearer second-key'}):
        assert client.get(SEARCH, headers=headers).status_code == 200
    assert client.get('/metrics').status_code == 401
    for open_to_all in ('/healthz', '/readyz', '/docs', '/openapi.json'):
        assert client.get(open_to_all).status_code == 200


def test_until_the_indexes_are_open_the_service_is_not_ready(index_settings):
    client = TestClient(
        create_app(ServeSettings(indexes={'tiny': index_settings}))
    )  # never started
    for address in ('/readyz', SEARCH, '/v1/indexes', '/v1/tiny'):
        answer = client.get(address)
        assert answer.status_code == 503 and 'being opened' in answer.json()['error'], address
        assert answer.headers['retry-after'] == '1'
    assert client.get('/healthz').status_code == 200


def test_request_ids_and_security_headers(client):
    own = client.get(SEARCH, headers={'x-request-id': 'mine-1'})
    assert own.headers['x-request-id'] == 'mine-1'
    for given in ('a b', 'x' * 65, 'é', '<script>'):
        answer = client.get(SEARCH, headers={'x-request-id': given.encode()})
        assert re.fullmatch('[0-9a-f]{32}', answer.headers['x-request-id'])
    for answer in (own, client.get('/nowhere'), client.get('/docs')):
        policy = answer.headers['content-security-policy']
        assert "default-src 'none'" in policy and 'unsafe' not in policy and 'http' not in policy
        assert answer.headers['x-content-type-options'] == 'nosniff'
    assert '<script' not in client.get('/docs').text


def test_the_log_has_no_query_unless_asked(serving, caplog):
    caplog.set_level(logging.INFO, 'pyserini_repbert.serve.requests')
    for log_queries in (False, True):
        client = serving(log_queries=log_queries)
        caplog.clear()
        client.get('/v1/tiny/search?query=sunny', headers={'x-api-key': 'a-key'})
        (entry,) = [
            json.loads(record.message)
            for record in caplog.records
            if record.name.endswith('requests')
        ]
        assert (entry['path'], entry['status'], entry['method']) == ('/v1/tiny/search', 200, 'GET')
        assert (
            entry['latency_ms'] > 0
            and 'a-key' not in json.dumps(entry)
            and len(entry['key_id']) == 12
        )
        assert ('sunny' in json.dumps(entry)) == log_queries


def test_metrics_count(client):
    client.get(SEARCH)
    client.get(f'{SEARCH}&rerank=monobert@3')
    client.get('/v1/tinny/search?query=cat')
    text = client.get('/metrics').text
    assert (
        'pyserini_repbert_requests_total{method="GET",route="/v1/{index}/search",status="200"} 2.0'
        in text
    )
    assert (
        'pyserini_repbert_requests_total{method="GET",route="/v1/{index}/search",status="404"} 1.0'
        in text
    )
    assert 'pyserini_repbert_inferences_total{step="monobert"} 3.0' in text
    assert 'pyserini_repbert_waiting{lane="rerank"} 0.0' in text

"""Bad requests: the right status, one JSON error that says what to do, and the service goes on."""

import json
import logging
import re
from dataclasses import dataclass

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
    (f'{SEARCH}&alpha=0.3', 400, "alpha is for fusion by 'interpolation'"),
    (f'{SEARCH}&k1=1', 400, "'bm25' alone"),
    (f'{SEARCH}&hits=1000000', 400, 'at most 1000'),
    (f'{SEARCH}&hits=', 400, 'hits'),
    (f'{SEARCH}&hist=3', 400, "did you mean 'hits'"),
    (f'{SEARCH}&k=3', 400, "parameter 'k' is unknown (did you mean 'hits'?)"),
    (f'{SEARCH}&limit=3', 400, "did you mean 'hits'"),
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


def _check_refusal(answer, status, says):
    """An answer is one JSON error of this status, in one short line, that says this."""
    what = f'{str(answer.url)[:100]}: {answer.status_code} {answer.text[:300]}'
    assert answer.status_code == status, what
    assert list(answer.json()) == ['error'], what
    error = answer.json()['error']
    assert says in error, what
    assert '\n' not in error, what
    assert len(error) < 1000, what


def test_bad_addresses(client):
    """One service answers all of them, and goes on."""
    for address, status, says in BAD_ADDRESSES:
        _check_refusal(client.get(address), status, says)
    assert client.get(SEARCH).status_code == 200


@dataclass(frozen=True)
class BadBody:
    """A body that is refused, with the status of the answer and what its error says."""

    content: bytes
    status: int
    says: str
    path: str = '/v1/tiny/batch'
    content_type: str = 'application/json'


COMPARE = '/v1/tiny/compare'
BAD_BODIES = [
    BadBody(b'{', 400, 'not JSON'),
    BadBody(b'\xff\xfe', 400, ''),
    BadBody(b'[' * 100_000, 400, ''),
    BadBody(b'{}', 422, 'queries'),
    BadBody(b'query=cat', 422, 'Content-Type', content_type='application/x-www-form-urlencoded'),
    BadBody(b'{"queries": [{"text": "\\ud800"}]}', 400, 'surrogate'),
    BadBody(b'{"queries": [{"text": "cat"}], "hits": 1e400}', 422, 'hits'),
    BadBody(b'{"queries": [{"text": "cat"}], "alpha": NaN}', 422, 'alpha'),
    BadBody(b'{"queries": [{"text": "cat"}], "hits": 5000}', 400, 'at most 1000'),
    BadBody(b'{"query": "cat", "a": {"systm": []}}', 422, 'systm', path=COMPARE),
    BadBody(
        b'{"hits": 1, "hits": 1}',
        400,
        "the body: the key 'hits' occurs twice",
        content_type='Application/Json; q=1',
    ),
    BadBody(
        b'{"query": "a", "b": {"k1": 1, "k1": 1}}',
        400,
        "'k1' occurs twice",
        path=COMPARE,
        content_type='application/a+json',
    ),
    BadBody(b'{"hits": 1, "hits": 2}', 422, 'Input should be a valid', content_type='text/json'),
    BadBody(b'', 422, 'the body: Field required'),
    BadBody(b'', 405, 'POST', path='/v1/tiny/search'),
]


def test_bad_bodies(client):
    """One service answers all of them, and goes on."""
    for bad in BAD_BODIES:
        headers = {'content-type': bad.content_type}
        answer = client.post(bad.path, content=bad.content, headers=headers)
        _check_refusal(answer, bad.status, bad.says)
    assert client.get(SEARCH).status_code == 200


def test_too_many_queries_of_a_batch(serving):
    client = serving(Limits(batch_queries=2))
    answer = client.post('/v1/tiny/batch', json={'queries': [{'text': 'cat'}] * 3})
    _check_refusal(answer, 400, 'at most 2')


def test_a_body_that_says_that_it_is_too_long(serving):
    client = serving(Limits(body_bytes=200))
    answer = client.post('/v1/tiny/batch', json={'queries': [{'text': 'x' * 300}]})
    _check_refusal(answer, 413, '200 bytes are read')


def test_a_body_that_turns_out_to_be_too_long(serving):
    client = serving(Limits(body_bytes=200))
    chunks = iter([b'x' * 50] * 50)  # sent without their length
    headers = {'content-type': 'application/json'}
    answer = client.post('/v1/tiny/batch', content=chunks, headers=headers)
    _check_refusal(answer, 413, 'too long')


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

    index = client.app.state.service.served['tiny']
    monkeypatch.setattr(index, 'ranker', broken)
    answer = client.get(SEARCH)
    assert answer.status_code == 500 and list(answer.json()) == ['error']
    assert 'secret' not in answer.text and answer.headers['x-request-id'] in answer.json()['error']
    assert 'secret' in caplog.text


def test_a_key_that_no_header_can_hold_is_refused(tmp_path):
    keys = tmp_path / 'keys.txt'
    keys.write_text('schl\u00fcssel\n', encoding='utf-8')
    with pytest.raises(InputError, match='an API key has to be ASCII'):
        ServeSettings.of(api_keys=read_keys(keys))


@pytest.fixture
def client_with_keys(serving, tmp_path):
    """A client of a service that takes two keys."""
    keys = tmp_path / 'keys.txt'
    keys.write_text('first-key\n# two of them\n\nsecond-key\n', encoding='utf-8-sig')
    return serving(api_keys=read_keys(keys))


def test_a_key_is_taken_from_either_header(client_with_keys):
    for headers in ({'x-api-key': 'first-key'}, {'authorization': 'Bearer second-key'}):
        assert client_with_keys.get(SEARCH, headers=headers).status_code == 200


@pytest.mark.parametrize(
    'headers',
    [
        {},
        {'x-api-key': 'wrong'},
        {'authorization': 'Bearer first-kez'},
        {'authorization': 'first-key'},
    ],
)
def test_without_an_accepted_key_nothing_is_answered(headers, client_with_keys):
    _check_refusal(client_with_keys.get(SEARCH, headers=headers), 401, 'takes a key')
    assert client_with_keys.get('/metrics', headers=headers).status_code == 401


def test_health_and_docs_need_no_key(client_with_keys):
    for address in ('/healthz', '/readyz', '/docs', '/openapi.json'):
        assert client_with_keys.get(address).status_code == 200


def test_until_the_indexes_are_open_the_service_is_not_ready(index_settings):
    settings = ServeSettings(indexes={'tiny': index_settings})
    client = TestClient(create_app(settings))  # never started
    for address in ('/readyz', SEARCH, '/v1/indexes', '/v1/tiny'):
        answer = client.get(address)
        _check_refusal(answer, 503, 'being opened')
        assert answer.headers['retry-after'] == '1'
    assert client.get('/healthz').status_code == 200


def test_a_clients_request_id_comes_back(client):
    answer = client.get(SEARCH, headers={'x-request-id': 'mine-1'})
    assert answer.headers['x-request-id'] == 'mine-1'


@pytest.mark.parametrize('request_id', ['a b', 'x' * 65, 'é', '<script>'])
def test_a_strange_request_id_is_replaced(request_id, client):
    answer = client.get(SEARCH, headers={'x-request-id': request_id.encode()})
    assert re.fullmatch('[0-9a-f]{32}', answer.headers['x-request-id'])


@pytest.mark.parametrize('address', [SEARCH, '/nowhere', '/docs'])
def test_every_answer_has_headers_of_security(address, client):
    headers = client.get(address).headers
    policy = headers['content-security-policy']
    assert "default-src 'none'" in policy
    assert 'unsafe' not in policy
    assert 'http' not in policy
    assert headers['x-content-type-options'] == 'nosniff'


def test_the_documentation_has_no_script(client):
    assert '<script' not in client.get('/docs').text


def _logged(client, caplog):
    """The entry of the log of a search by a client with a key."""
    caplog.set_level(logging.INFO, 'pyserini_repbert.serve.requests')
    caplog.clear()
    client.get('/v1/tiny/search?query=sunny', headers={'x-api-key': 'a-key'})
    (record,) = [record for record in caplog.records if record.name.endswith('serve.requests')]
    return json.loads(record.message)


def test_the_log_has_neither_query_nor_key(client, caplog):
    entry = _logged(client, caplog)
    assert entry['path'] == '/v1/tiny/search'
    assert entry['status'] == 200
    assert entry['method'] == 'GET'
    assert entry['latency_ms'] > 0
    assert len(entry['key_id']) == 12
    assert 'a-key' not in json.dumps(entry)
    assert 'sunny' not in json.dumps(entry)


def test_the_log_has_the_query_if_it_is_wanted(serving, caplog):
    assert 'sunny' in _logged(serving(log_queries=True), caplog)['query']


def test_metrics_count_requests_by_route_and_status(client):
    client.get(SEARCH)
    client.get(SEARCH)
    client.get('/v1/tinny/search?query=cat')
    lines = client.get('/metrics').text.splitlines()
    name = 'pyserini_repbert_requests_total'
    route = 'method="GET",route="/v1/{index}/search"'
    assert f'{name}{{{route},status="200"}} 2.0' in lines
    assert f'{name}{{{route},status="404"}} 1.0' in lines


def test_metrics_count_inferences_and_waiting_jobs(client):
    client.get(f'{SEARCH}&rerank=monobert@3')
    lines = client.get('/metrics').text.splitlines()
    assert 'pyserini_repbert_inferences_total{step="monobert"} 3.0' in lines
    assert 'pyserini_repbert_waiting{queue="rerank"} 0.0' in lines


def test_a_request_with_two_lengths_closes_the_connection(client):
    both = {'content-length': '2', 'transfer-encoding': 'chunked'}
    refused = client.get('/v1/tiny/search?query=cat', headers=both)
    assert refused.status_code == 400
    assert 'send one of them' in refused.json()['error']
    assert refused.headers['connection'] == 'close'

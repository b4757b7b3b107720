"""Texts reranked and encoded for other programs, in the forms of Cohere, Jina and OpenAI."""

import base64

import numpy as np
import pytest
from ready_services import ready_client

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import EpicReranker, MonoBertReranker
from pyserini_repbert.serve.http_errors import error_body
from pyserini_repbert.serve.settings import Limits, ServeSettings

TEXTS = ['the fish ate the bird', 'cat sat on the mat', 'a red moon']


@pytest.fixture
def client(serving):
    return serving(Limits(rerank_depth=3, embedding_inputs=3))


@pytest.fixture
def encoder_folder(tmp_path):
    return tmp_path / 'encoder'


def test_texts_are_reranked(client, rerankers):
    asked = {'model': 'monobert', 'query': 'cat on the mat', 'documents': TEXTS}
    answer = client.post('/v1/rerank', json=asked).json()
    candidates = [Candidate(str(number), text=text) for number, text in enumerate(TEXTS)]
    expected = MonoBertReranker(rerankers[0]).rerank('cat on the mat', candidates)
    found = [(hit['index'], hit['relevance_score']) for hit in answer['results']]
    assert [index for index, _ in found] == [int(hit.docid) for hit in expected]
    probabilities = np.exp([hit.score for hit in expected])
    np.testing.assert_allclose([score for _, score in found], probabilities, 1e-5)
    assert 'document' not in answer['results'][0]


@pytest.mark.parametrize('model', ['monobert', 'duobert', 'epic', 'cedr'])
def test_relevance_lies_within_0_and_1_in_the_order_of_scores(client, model):
    asked = {'model': model, 'query': 'cat on the mat', 'documents': TEXTS}
    answer = client.post('/v2/rerank', json=asked).json()
    scores = [hit['relevance_score'] for hit in answer['results']]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= min(scores) <= max(scores) <= 1


@pytest.mark.parametrize(('score', 'relevance'), [(0, 0.5), (1e4, 1), (-1e4, 0), (2, 0.880797)])
def test_the_sigmoid_of_any_score(tiny_epic, score, relevance):
    reranker = EpicReranker(tiny_epic('own'))
    assert reranker.relevance(score) == pytest.approx(relevance, abs=1e-6)


def test_the_best_texts_come_with_their_text_where_asked_for(client):
    documents = [{'text': TEXTS[0], 'title': 'not read'}, *TEXTS[1:]]
    asked = {'model': 'monobert', 'query': 'cat', 'documents': documents}
    answer = client.post('/v2/rerank', json={**asked, 'top_n': 2, 'return_documents': True}).json()
    assert len(answer['results']) == 2
    for hit in answer['results']:
        assert hit['document'] == {'text': TEXTS[hit['index']]}


def test_vectors_of_documents_and_queries(client, encoder_folder):
    asked = {'model': 'tiny', 'input': TEXTS}
    answer = client.post('/v1/embeddings', json=asked).json()
    assert answer['model'] == 'encoder' and answer['usage']['total_tokens'] > 0
    documents = RepBertDocumentEncoder(encoder_folder).embed(TEXTS)
    found = [item['embedding'] for item in answer['data']]
    np.testing.assert_allclose(found, documents, atol=1e-6)

    asked = {'model': 'encoder', 'input': TEXTS[1], 'input_type': 'search_query'}
    (item,) = client.post('/v1/embeddings', json=asked).json()['data']
    query = RepBertQueryEncoder(encoder_folder).encode(TEXTS[1])
    np.testing.assert_allclose(item['embedding'], query, atol=1e-6)
    assert np.abs(query - documents[1]).max() > 1e-4

    packed = client.post('/v1/embeddings', json={**asked, 'encoding_format': 'base64'}).json()
    numbers = np.frombuffer(base64.b64decode(packed['data'][0]['embedding']), '<f4')
    np.testing.assert_allclose(numbers, query, atol=1e-6)


def test_token_ids_of_the_encoder_are_decoded(client, encoder_folder):
    tokenizer = RepBertDocumentEncoder(encoder_folder).tokenizer
    ids = tokenizer.ids(TEXTS)
    with_ends = [tokenizer.cls, *ids[1], tokenizer.sep]
    expected = client.post('/v1/embeddings', json={'model': 'encoder', 'input': TEXTS}).json()
    asked = {'model': 'tiny', 'tokenizer': 'encoder'}
    found = client.post('/v1/embeddings', json={**asked, 'input': ids}).json()
    assert found == expected
    found = client.post('/v1/embeddings', json={**asked, 'input': with_ends}).json()
    (item,) = found['data']
    np.testing.assert_allclose(item['embedding'], expected['data'][1]['embedding'], atol=1e-6)


def test_fields_of_documents_are_joined(client, rerankers):
    documents = [
        {'title': 'cat', 'body': 'sat on the mat', 'year': 2020},
        {'title': 'a red moon', 'year': 1999},
        'the fish ate the bird',
    ]
    joined = ['2020 cat sat on the mat', '1999 a red moon', documents[2]]
    asked = {'model': 'monobert', 'query': 'cat on the mat', 'documents': documents}
    asked |= {'rank_fields': ['year', 'title', 'body'], 'return_documents': True}
    answer = client.post('/v1/rerank', json=asked).json()
    candidates = [Candidate(str(number), text=text) for number, text in enumerate(joined)]
    expected = MonoBertReranker(rerankers[0]).rerank('cat on the mat', candidates)
    assert [hit['index'] for hit in answer['results']] == [int(hit.docid) for hit in expected]
    found = [hit['relevance_score'] for hit in answer['results']]
    np.testing.assert_allclose(found, np.exp([hit.score for hit in expected]), 1e-5)
    returned = {hit['index']: hit['document'] for hit in answer['results']}
    assert returned[0] == {'text': joined[0], **documents[0]}
    assert returned[2] == {'text': documents[2]}


def test_models_are_listed(client):
    names = [model['id'] for model in client.get('/v1/models').json()['data']]
    assert names == ['encoder', 'monobert', 'duobert', 'epic', 'cedr']


@pytest.mark.parametrize(
    ('path', 'changes', 'status', 'said'),
    [
        ('rerank', {'model': 'other'}, 404, "no reranker 'other' here"),
        ('rerank', {'documents': []}, 400, "'documents' is empty"),
        ('rerank', {'documents': ['x', ' ']}, 400, "text 1 of 'documents' is empty"),
        ('rerank', {'documents': ['x'] * 4}, 400, 'at most 3 candidates'),
        ('rerank', {'query': ' '}, 400, ''),
        ('rerank', {'documents': [3]}, 422, 'documents'),
        ('rerank', {'other': 1}, 422, 'other'),
        ('rerank', {'documents': [{'title': 'x'}]}, 400, 'document 0 has no text: name its fields'),
        ('rerank', {'documents': [{'a': 'x'}], 'rank_fields': ['b']}, 400, 'document 0 has no b'),
        ('rerank', {'documents': [{'a': []}], 'rank_fields': ['a']}, 400, 'neither text nor'),
        ('rerank', {'rank_fields': []}, 422, 'rank_fields'),
        ('embeddings', {'input': [9906, 1917]}, 400, 'check_embedding_ctx_length=False'),
        ('embeddings', {'input': [[9906]], 'tokenizer': 'cl100k'}, 400, "ids of 'cl100k' were"),
        ('embeddings', {'input': [10**6], 'tokenizer': 'encoder'}, 400, 'has no token 1000000'),
        ('embeddings', {'input': [-1], 'tokenizer': 'encoder'}, 400, 'has no token -1'),
        ('embeddings', {'input': [[]], 'tokenizer': 'encoder'}, 400, "text 0 of 'input' is empty"),
        ('embeddings', {'input': [True]}, 422, 'input'),
        ('embeddings', {'input': [1.5]}, 422, 'input'),
        ('embeddings', {'input': ['a', 3]}, 422, 'input'),
        ('embeddings', {'model': 'other'}, 404, "no encoder 'other' here"),
        ('embeddings', {'input': []}, 400, "'input' is empty"),
        ('embeddings', {'input': ['a', ' ']}, 400, "text 1 of 'input' is empty"),
        ('embeddings', {'input': ['x'] * 4}, 400, 'at most 3 are allowed'),
        ('embeddings', {'input_type': 'poem'}, 400, "input_type 'poem': expected query"),
        ('embeddings', {'dimensions': 7}, 400, "'dimensions' is 7: encoder has vectors of"),
    ],
)
def test_what_is_refused(client, path, changes, status, said):
    asked = {
        'rerank': {'model': 'monobert', 'query': 'cat', 'documents': TEXTS},
        'embeddings': {'model': 'encoder', 'input': TEXTS},
    }
    answer = client.post(f'/v1/{path}', json={**asked[path], **changes})
    assert answer.status_code == status and said in answer.json()['error']['message'], answer.text


def test_a_model_by_its_id(client):
    ids = [model['id'] for model in client.get('/v1/models').json()['data']]
    for model in ids:
        assert client.get(f'/v1/models/{model}').json()['id'] == model
    answer = client.get('/v1/models/other')
    assert answer.status_code == 404
    error = answer.json()['error']
    assert error['message'].startswith("'other' is not a model here")
    assert (error['type'], error['code'], error['param']) == (
        'invalid_request_error',
        'not_found',
        None,
    )


def test_a_body_that_is_not_json_has_an_error_of_openais_form(client):
    answer = client.post(
        '/v1/embeddings', content='{', headers={'content-type': 'application/json'}
    )
    assert answer.status_code == 400
    assert answer.json()['error']['type'] == 'invalid_request_error'


@pytest.mark.parametrize(
    ('settings', 'host', 'status', 'kind'),
    [
        ({'api_keys': ['right']}, 'testserver', 401, 'authentication_error'),
        ({'limits': Limits(body_bytes=1)}, 'testserver', 413, 'invalid_request_error'),
        ({'allowed_hosts': ['testserver']}, 'other.example', 421, 'invalid_request_error'),
    ],
)
@pytest.mark.parametrize('address', ['/v1/embeddings', '/v1/rerank', '/v2/rerank'])
def test_who_is_not_let_in_reads_openais_form(address, settings, host, status, kind, serving):
    client = serving(**settings)
    answer = client.post(address, json={}, headers={'host': host})
    assert answer.status_code == status
    assert answer.json()['error']['type'] == kind


def test_texts_of_a_client_have_no_index(index_settings):
    settings = ServeSettings(indexes={'tiny': index_settings}, rerankers=['mmr'])
    body = {'model': 'mmr', 'query': 'q', 'documents': ['a', 'b']}
    with ready_client(settings) as client:
        answer = client.post('/v1/rerank', json=body)
    assert answer.status_code == 400
    assert 'reads the index that is searched' in answer.text


@pytest.mark.parametrize(
    ('status', 'kind'),
    [(401, 'authentication_error'), (408, 'invalid_request_error'), (503, 'server_error')],
)
def test_a_client_of_openai_reads_its_form(status, kind):
    error = error_body('/v1/embeddings', status, 'not complete')['error']
    assert (error['type'], error['message']) == (kind, 'not complete')
    assert error_body('/v1/tiny/batch', status, 'not complete') == {'error': 'not complete'}


# Requests that are answered.
RERANKED = {'model': 'monobert', 'query': 'cat'}
REQUESTS = [
    ('post', '/v1/rerank', {**RERANKED, 'documents': ['cat', 'dog'], 'top_n': 1}),
    (
        'post',
        '/v1/rerank',
        {**RERANKED, 'documents': [{'text': 'cat', 'name': 'b'}], 'rank_fields': ['text', 'name']},
    ),
    ('post', '/v1/embeddings', {'model': 'tiny', 'input': 'cat', 'input_type': 'query'}),
    ('post', '/v1/embeddings', {'model': 'tiny', 'input': ['cat', 'dog']}),
    ('post', '/v1/embeddings', {'model': 'tiny', 'input': [7, 8], 'tokenizer': 'tiny'}),
    ('post', '/v1/embeddings', {'model': 'tiny', 'input': [[7, 8], [7, 8]], 'tokenizer': 'tiny'}),
]


@pytest.mark.parametrize(
    ('method', 'path', 'request_'), REQUESTS, ids=[f'{r[1]} {[*r[2]]}' for r in REQUESTS]
)
def test_what_the_document_says_is_enforced_here(method, path, request_, serving):
    pytest.importorskip('jsonschema', reason='the dev extra is not installed')
    from stated_limits import differing_requests

    far = 10**9
    client = serving(Limits(query_characters=far, hits=far, rerank_depth=far, inferences=far))
    assert differing_requests(client, method, path, request_) == []


def test_the_description_of_a_request_has_what_is_enforced(serving):
    schemas = serving().get('/openapi.json').json()['components']['schemas']
    assert schemas['RerankTextsRequest']['properties']['documents']['minItems'] == 1
    kinds = schemas['EmbeddingsRequest']['properties']['input_type']['enum']
    assert set(kinds) > {'query', 'document', None}

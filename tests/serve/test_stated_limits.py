"""What the OpenAPI document says of a request is what is enforced: a request that it does not allow
is refused, and no other.
"""

import copy
import re

import pytest

pytest.importorskip('jsonschema', reason='the dev extra is not installed')

from jsonschema import Draft202012Validator

from pyserini_repbert.serve.settings import Limits

# Requests that are answered, each with its operation in the document
RERANKED = {'model': 'monobert', 'query': 'cat'}
JUDGMENT = {'question': 'cat', 'docid': 'd1', 'grade': 2, 'judge': 'Ada', 'comment': 'c'}
REQUESTS = [
    ('get', '/v1/{index}/search', {'query': 'cat', 'hits': 2, 'system': ['dense']}),
    ('get', '/v1/{index}/search', {'query': 'cat', 'explain': ['epic'], 'explain_hits': 1}),
    ('get', '/v1/{index}/search', {'query': 'cat', 'max_doc_length': 9, 'fields': ['title']}),
    ('get', '/v1/{index}/explain', {'query': 'cat', 'model': 'epic', 'docid': ['d1'], 'top': 3}),
    ('get', '/v1/{index}/doc/{docid}', {'display': True, 'query': 'cat', 'max_doc_length': 9}),
    ('get', '/v1/{index}/topics', {'like': 'cat', 'limit': 3}),
    ('post', '/v1/{index}/batch', {'queries': [{'text': 'cat', 'qid': 'q'}], 'hits': 2}),
    ('post', '/v1/{index}/batch', {'queries': [{'text': 'cat'}], 'rerank': ['monobert@2']}),
    ('post', '/v1/{index}/compare', {'query': 'cat', 'a': {'system': ['dense']}, 'b': {}}),
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
    ('post', '/v1/{index}/questions', {'questions': ['cat', 'dog']}),
    ('post', '/v1/{index}/pools', {'question': 'cat', 'depth': 2, 'judge': 'Ada'}),
    ('post', '/v1/{index}/judgments', {'judgments': [JUDGMENT]}),
    ('get', '/v1/{index}/judgments', {'judge': 'Ada', 'question': 'cat'}),
    ('get', '/v1/{index}/questions', {'judge': 'Ada'}),
    ('delete', '/v1/{index}/judgments', {'question': 'cat', 'docid': 'd1', 'judge': 'Ada'}),
]
TEXTS = ('', ' \t', 'x' * 101, 'x' * 1001, 'x' * 2001)
NUMBERS = (-1, 0, 11, 101, 1001)
# What depends on the encoder, not on the form of a request
OF_ENCODER = re.compile(r'has no token \d|reads its own only')


@pytest.fixture
def index_settings(index_settings, tmp_path):
    """The tiny index, of which judgments are taken."""
    return index_settings.model_copy(update={'judgments': str(tmp_path / 'judgments.sqlite')})


@pytest.fixture
def client(serving):
    """A client of a service whose own limits are out of the way."""
    far = 10**9
    return serving(Limits(query_characters=far, hits=far, rerank_depth=far, inferences=far))


@pytest.mark.parametrize(
    ('method', 'path', 'request_'), REQUESTS, ids=[f'{r[0]} {r[1]} {[*r[2]]}' for r in REQUESTS]
)
def test_what_the_document_says_is_enforced(method, path, request_, client):
    document = client.app.openapi()
    schema = _schema(document['paths'][path][method]) | {'components': document['components']}
    validator = Draft202012Validator(schema)
    assert _is_taken(client, method, path, request_)
    differing = []
    for changed in _variations(request_):
        if method != 'post' and [] in changed.values():
            # An address cannot have an empty list.
            continue
        is_allowed = validator.is_valid(changed)
        if is_allowed != _is_taken(client, method, path, changed):
            differing.append((is_allowed, changed))
    assert differing == []


def _schema(operation):
    """The schema of an operation's body, or of its parameters as an object."""
    if 'requestBody' in operation:
        return operation['requestBody']['content']['application/json']['schema']
    parameters = [one for one in operation['parameters'] if one['in'] == 'query']
    return {
        'type': 'object',
        'properties': {one['name']: one['schema'] for one in parameters},
        'required': [one['name'] for one in parameters if one.get('required')],
    }


def _is_taken(client, method, path, values):
    """Whether the form of a request is taken, whatever its answer is."""
    address = path.replace('{index}', 'tiny').replace('{docid}', 'd1')
    sent = {'json': values} if method == 'post' else {'params': values}
    answer = client.request(method, address, **sent)
    assert answer.status_code in (200, 400, 404, 422), answer.text
    return answer.status_code in (200, 404) or bool(OF_ENCODER.search(answer.text))


def _variations(value):
    """The values that differ in one text, number or list; or in a text more of a list."""
    if isinstance(value, bool):
        return
    if isinstance(value, str):
        yield from TEXTS
    elif isinstance(value, int):
        yield from NUMBERS
    elif isinstance(value, list):
        yield []
        yield [*value, copy.deepcopy(value[0])]
    items = {dict: dict.items, list: enumerate}.get(type(value), lambda _: ())
    for key, item in items(value):
        for changed in _variations(item):
            whole = copy.copy(value)
            whole[key] = changed
            yield whole

"""What the OpenAPI document says of a request is what is enforced: a request that it does not allow
is refused, and no other.
"""

import pytest

pytest.importorskip('jsonschema', reason='the dev extra is not installed')

from stated_limits import differing_requests

from pyserini_repbert.serve.settings import Limits

# Requests that are answered, each with its operation in the document
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
    ('post', '/v1/{index}/questions', {'questions': ['cat', 'dog']}),
    ('post', '/v1/{index}/pools', {'question': 'cat', 'depth': 2, 'judge': 'Ada'}),
    ('post', '/v1/{index}/judgments', {'judgments': [JUDGMENT]}),
    ('get', '/v1/{index}/judgments', {'judge': 'Ada', 'question': 'cat'}),
    ('get', '/v1/{index}/questions', {'judge': 'Ada'}),
    ('delete', '/v1/{index}/judgments', {'question': 'cat', 'docid': 'd1', 'judge': 'Ada'}),
]


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
    assert differing_requests(client, method, path, request_) == []

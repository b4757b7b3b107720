"""The published clients of OpenAI and Cohere ask the service for vectors and rerank texts."""

import numpy as np
import pytest
from ready_services import ready_client

from pyserini_repbert.encode import RepBertDocumentEncoder
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.serve.settings import ServeSettings

cohere = pytest.importorskip('cohere', reason='the interop extra is not installed')
openai = pytest.importorskip('openai', reason='the interop extra is not installed')

TEXTS = ['Copper tape keeps slugs off lettuce.', 'Who won the cup final?', 'Water tomatoes evenly.']


@pytest.fixture(scope='module')
def service():
    """A client of a service of the demo, which takes a key."""
    settings = ServeSettings(
        indexes={'demo': {'name': 'demo'}}, rerankers=['monobert-demo'], api_keys=['secret']
    )
    with ready_client(settings) as client:
        yield client


def test_openai_encodes(service):
    client = openai.OpenAI(
        api_key='secret', base_url='http://testserver/v1', http_client=service, max_retries=0
    )
    (name, *_) = [model.id for model in client.models.list()]
    answer = client.embeddings.create(model=name, input=TEXTS)
    found = np.array([item.embedding for item in answer.data])
    np.testing.assert_allclose(found, RepBertDocumentEncoder(name).embed(TEXTS), atol=1e-5)
    assert client.models.retrieve(name).id == name
    with pytest.raises(openai.NotFoundError, match="'other'") as refused:
        client.embeddings.create(model='other', input=TEXTS)
    assert refused.value.code == 'not_found'


@pytest.mark.parametrize('client_class', [cohere.Client, cohere.ClientV2])
def test_cohere_reranks(service, client_class):
    client = client_class('secret', base_url='http://testserver', httpx_client=service)
    answer = client.rerank(
        model='monobert-demo', query='keep snails off salad', documents=TEXTS, top_n=2
    )
    candidates = [Candidate(str(number), text=text) for number, text in enumerate(TEXTS)]
    expected = MonoBertReranker('monobert-demo').rerank('keep snails off salad', candidates, k=2)
    assert [hit.index for hit in answer.results] == [int(hit.docid) for hit in expected]
    scores = [hit.relevance_score for hit in answer.results]
    probabilities = np.exp([hit.score for hit in expected])
    np.testing.assert_allclose(scores, probabilities, atol=1e-4)

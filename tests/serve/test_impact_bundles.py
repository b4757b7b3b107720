"""A bundle of weights of terms is served: searched exactly, without Lucene."""

import asyncio

import pytest
from ready_services import ready_client

from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.term_weights.opening import open_term_weights_searcher
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from pyserini_repbert.systems.epic.encoder import EpicEncoder


@pytest.fixture
def make_bundle(tiny_epic, corpus_file, tmp_path):
    """make(store_text) -> the folder of a bundle of 12 passages."""

    def make(store_text):
        corpus = open_corpus(corpus_file(12))
        encoder = EpicEncoder(tiny_epic())
        encode_corpus(corpus, encoder, tmp_path / 'weights', prune=15, store_text=store_text)
        return tmp_path / 'weights'

    return make


def _settings(folder):
    return ServeSettings(indexes={'weights': IndexSettings(path=str(folder))}, rerankers=[])


def test_it_answers_as_the_searcher_does(make_bundle):
    folder = make_bundle(store_text=True)
    expected = open_term_weights_searcher(folder).search('the red cat', 4)
    with ready_client(_settings(folder)) as client:
        (offered,) = client.get('/v1/indexes').json()['indexes']
        assert (offered['index_type'], offered['systems']) == ('impact', ['sparse'])
        parameters = {'query': 'the red cat', 'hits': 4}
        answer = client.get('/v1/weights/search', params=parameters).json()
    hits = answer['candidates']
    assert [hit['docid'] for hit in hits] == [hit.docid for hit in expected]
    assert [hit['score'] for hit in hits] == pytest.approx(
        [hit.score for hit in expected], abs=1e-5
    )
    assert expected[0].text in str(hits[0])


def test_without_passages_it_is_refused(make_bundle):
    service = Service(_settings(make_bundle(store_text=False)))

    async def opening():
        await service.open()

    with pytest.raises(InputError, match='stores no passages'):
        asyncio.run(opening())

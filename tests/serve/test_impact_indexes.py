"""Lucene indexes of words and of another program's impacts, served as Pyserini's server does."""

import json

import pytest
from opened_services import failure_of
from ready_services import ready_client

from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.jvm import java_class
from pyserini_repbert.names.sparse import open_impacts
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

pytestmark = pytest.mark.jvm

VECTORS = {
    'd1': {'cat': 3, '##s': 1},
    'd2': {'cat': 1, 'dog': 5},
    'd3': {'dog': 2, '##s': 4},
}
TEXTS = {'d1': 'cats', 'd2': 'a cat and dogs', 'd3': 'dogs'}


class Encoder:
    """The weights of a query: 2 for 'cat', 1 for 'dog', and 0 for the rest; all times `times`."""

    def __init__(self, times='1'):
        self.times = int(times)

    def encode(self, query):
        weights = {'cat': 2, 'dog': 1}
        return {word: self.times * weights.get(word, 0) for word in query.split()}


ENCODER = f'{__name__}:Encoder'


def write_index(folder, documents, impact=False):
    folder.mkdir()
    with LuceneWriter(folder, impact=impact) as writer:
        writer.add([json.dumps(document) for document in documents])
    return str(folder)


@pytest.fixture
def impacts(tmp_path):
    documents = []
    for docid, vector in VECTORS.items():
        documents.append({'id': docid, 'contents': TEXTS[docid], 'vector': vector})
    return write_index(tmp_path / 'impacts', documents, impact=True)


@pytest.fixture
def bare(tmp_path):
    """Impacts without texts, as Pyserini's are."""
    options = ['-input', '', '-collection', 'JsonVectorCollection', '-impact', '-pretokenized']
    options += ['-index', str(tmp_path / 'bare')]
    indexer = java_class('io.anserini.index.SimpleIndexer')(options)
    parser = java_class('com.fasterxml.jackson.databind.ObjectMapper')()
    kind = java_class('io.anserini.collection.JsonVectorCollection$Document')
    documents = []
    for docid, vector in VECTORS.items():
        text = json.dumps({'id': docid, 'vector': vector})
        documents.append(kind(parser.readTree(text)))
    assert indexer.addJsonDocuments(documents) == len(VECTORS)
    indexer.close()
    return str(tmp_path / 'bare')


@pytest.fixture
def words(tmp_path):
    documents = [{'id': docid, 'contents': text} for docid, text in TEXTS.items()]
    return write_index(tmp_path / 'words', documents)


def scores(client, index, **parameters):
    parameters = {'query': 'cat dog', **parameters}
    answer = client.get(f'/v1/{index}/search', params=parameters)
    assert answer.status_code == 200, answer.text
    return {hit['docid']: hit['score'] for hit in answer.json()['candidates']}


def test_inner_products_by_hand(impacts):
    searcher = open_impacts(impacts, ENCODER)
    by_hand = {'d2': 2 * 1 + 5, 'd1': 2 * 3, 'd3': 2}
    assert {hit.docid: hit.score for hit in searcher.search('cat dog')} == pytest.approx(by_hand)
    assert [hit.text for hit in searcher.search('cat dog', 1)] == ['a cat and dogs']
    tripled = open_impacts(impacts, f'{ENCODER}@3')
    assert tripled.search('cat')[0].score == pytest.approx(3 * 2 * 3)
    assert searcher.search('bird') == []
    pipeline = open_pipeline(PipelineSpec(index=impacts, encoder=ENCODER)).pipeline
    assert [hit.docid for hit in pipeline.search('cat dog')] == ['d2', 'd1', 'd3']


def test_all_are_served_together(impacts, bare, words):
    indexes = {
        'words': IndexSettings(path=words),
        'impacts': IndexSettings(path=impacts, index_type='impact', encoder=ENCODER),
        'bare': IndexSettings(path=bare, index_type='impact', encoder=ENCODER, base_index='words'),
    }
    with ready_client(ServeSettings(indexes=indexes, rerankers=[])) as client:
        about = {index['name']: index for index in client.get('/v1/indexes').json()['indexes']}
        assert [own['index_type'] for own in about.values()] == ['tf', 'impact', 'impact']
        assert about['impacts']['systems'] == ['impact']
        assert about['impacts']['like'] == []
        assert about['words']['default'] == ['bm25']
        by_hand = pytest.approx({'d2': 7, 'd1': 6, 'd3': 2})
        assert scores(client, 'impacts') == by_hand
        assert scores(client, 'bare') == by_hand
        assert set(scores(client, 'words', query='cats')) == {'d1', 'd2'}
        for index in ('impacts', 'bare'):
            assert client.get(f'/v1/{index}/doc/d2').json()['doc'] == 'a cat and dogs'
        answer = client.get('/v1/impacts/search', params={'like': 'd2'})
        assert answer.status_code == 400
        assert answer.json()['error'] == (
            "system 'impact' takes a question, not 'like': no system here takes both"
        )


def failure(**settings):
    """Why a service of one index cannot be opened, in one line."""
    return failure_of({'own': IndexSettings(**settings)})


def test_what_cannot_be_served(impacts, bare):
    def of_impacts(path=impacts, **settings):
        return failure(path=path, index_type='impact', **settings)

    assert 'does not name its encoder: give encoder, as MODULE:CLASS' in of_impacts()
    assert 'stores no passages: name the Lucene index' in of_impacts(path=bare, encoder=ENCODER)
    refused = of_impacts(encoder='splade')
    assert "'splade' is not an encoder of impacts: give MODULE:CLASS" in refused
    assert 'no.such' in of_impacts(encoder='no.such:Encoder')
    assert 'cannot be opened: invalid literal' in of_impacts(encoder=f'{ENCODER}@three')
    assert "has no method 'encode'" in of_impacts(encoder='collections:Counter')

"""Languages in the service: words of an index's language are marked, and empty queries are said."""

import json

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.serve.indexes import index_type_of
from pyserini_repbert.serve.settings import IndexSettings

GERMAN = {'a': 'Die alten Häuser stehen am Fluss.', 'b': 'Ein Garten mit Bäumen.'}


@pytest.fixture
def clients(tiny_checkpoint, tmp_path, serving_path):
    """A client of a German collection, and one of a foreign Lucene index, by their types."""
    small = {'encoder': str(tiny_checkpoint()), 'passage_tokens': 10, 'overlap': 3}
    with Collection.open(tmp_path / 'mine', language='de', **small) as collection:
        collection.sync([{'id': docid, 'text': text} for docid, text in GERMAN.items()])
    lucene = tmp_path / 'lucene'
    lucene.mkdir()
    with LuceneWriter(lucene, language='de') as writer:
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in GERMAN.items()])
    return {
        'collection': serving_path(tmp_path / 'mine', rerankers=[]),
        'tf': serving_path(lucene, {'language': 'de'}, rerankers=[]),
    }


@pytest.mark.jvm
def test_a_service_reads_the_language_of_its_index(clients):
    for index_type, client in clients.items():
        about = client.get('/v1/mine').json()
        assert (about['index_type'], about['language']) == (index_type, 'de')
        parameters = {'query': 'Haus', 'system': 'bm25', 'display': 'true'}
        answer = client.get('/v1/mine/search', params=parameters).json()
        (hit,) = answer['candidates']
        assert hit['docid'] == 'a'
        assert [part['text'] for part in hit['display'] if part['match']] == ['Häuser']
        assert 'warnings' not in answer
        whole = client.get('/v1/mine/doc/a', params={'query': 'Haus', 'display': 'true'}).json()
        assert [part['text'] for part in whole['display'] if part['match']] == ['Häuser']
        empty = client.get('/v1/mine/search', params={'query': 'die'}).json()
        assert empty['warnings'] == [
            "Lucene finds nothing for 'die': the analyzer of language 'de' leaves no word of it"
        ]
        batch = client.post(
            '/v1/mine/batch',
            json={'queries': [{'text': 'die'}, {'text': 'Haus'}], 'system': ['bm25']},
        )
        assert [result.get('warnings') is None for result in batch.json()['results']] == [
            False,
            True,
        ]


def test_a_language_is_for_an_index_that_takes_it(tmp_path, bundle):
    with pytest.raises(InputError, match="'language': language 'xx' has no analyzer"):
        IndexSettings.of(path=str(bundle), language='xx')
    settings = IndexSettings(path=str(bundle), language='de')
    with pytest.raises(InputError, match="of type 'dense': a language is for a Lucene index"):
        index_type_of('mine', settings)


@pytest.mark.jvm
@pytest.mark.usefixtures('clients')
def test_an_encoder_beside_an_index_of_words_is_not_used(tmp_path, serving_path):
    settings = {'language': 'de', 'encoder': 'minilm'}
    client = serving_path(tmp_path / 'lucene', settings, rerankers=[])
    about = client.get('/v1/mine').json()
    assert (about['index_type'], about['encoder']) == ('tf', None)
    assert 'bm25' in about['systems']

"""Every type of index that a settings file may name, opened and searched over HTTP; and what
cannot be opened.
"""

import asyncio

import pytest
from starlette.testclient import TestClient

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search.ann import build_ann
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings, read_settings
from pyserini_repbert.systems.epic.encoder import EpicEncoder

N = 640  # an approximate index takes 624 at least
CONFIG = """
indexes:
  dense: {path: bundle, ann: true, base_index: text}
  theirs: {path: faiss, index_type: faiss, encoder: encoder, base_index: text}
  epic: {path: impact, index_type: impact}
  text: {path: lucene, index_type: tf}
rerankers: []
"""
TEXT = 'cat dog'
SPARSE = ['bm25', 'bm25-tuned', 'bm25+rm3', 'ql', 'sdm']  # the catalog's that search such an index


@pytest.fixture
def folder(tiny_checkpoint, tiny_epic, corpus_file, tmp_path):
    """A bundle without texts, with an approximate index; Pyserini's layout of it; Lucene's of
    text and of impacts.
    """
    corpus = open_corpus(corpus_file(N))
    encode_corpus(corpus, RepBertDocumentEncoder(tiny_checkpoint('encoder')), tmp_path / 'bundle')
    build_ann(DenseBundle(tmp_path / 'bundle'), 'hnsw', 0.5, 10)
    export_faiss(DenseBundle(tmp_path / 'bundle'), tmp_path / 'faiss')
    build_lucene_index(corpus, tmp_path / 'lucene')
    encode_corpus(corpus, EpicEncoder(tiny_epic()), tmp_path / 'vectors', prune=15, store_text=True)
    arguments = ['lucene', '--variant', 'epic-impact', '--vectors', str(tmp_path / 'vectors')]
    assert command.run(index_command, [*arguments, '--output', str(tmp_path / 'impact')]) == 0
    (tmp_path / 'serve.yaml').write_text(CONFIG, encoding='utf-8')
    return tmp_path


def _failure(indexes):
    """Why a service of these indexes cannot be opened."""

    async def opened():
        service = Service(ServeSettings(indexes=indexes))
        try:
            await service.open()
        finally:
            await service.close()

    with pytest.raises(PyseriniRepbertError) as found:
        asyncio.run(opened())
    return str(found.value)


@pytest.mark.slow
@pytest.mark.jvm
def test_all_of_them(folder):
    indexes = read_settings(folder / 'serve.yaml').indexes
    with TestClient(create_app(ServeSettings(indexes=indexes))) as client:
        while client.get('/readyz').status_code == 503:
            assert client.app.state.service.failure is None
        offered = {own['name']: own for own in client.get('/v1/indexes').json()['indexes']}
        assert list(offered) == ['dense', 'theirs', 'epic', 'text']
        assert {
            name: (own['index_type'], own['systems'], own['passages'])
            for name, own in offered.items()
        } == {
            'dense': ('dense', ['dense', 'ann', *SPARSE], N),
            'theirs': ('faiss', ['dense', *SPARSE], N),
            'epic': ('impact', ['epic'], N),
            'text': ('tf', SPARSE, N),
        }

        def hits(index, **asked):
            answer = client.get(f'/v1/{index}/search', params={'query': TEXT, 'hits': 5, **asked})
            assert answer.status_code == 200, answer.text
            return {own['docid']: own['score'] for own in answer.json()['candidates']}

        own = hits('dense', system='dense')
        assert own == pytest.approx(hits('theirs', system='dense'), abs=1e-4)  # the same vectors
        # a search that names no systems is answered by vectors and text
        assert offered['dense']['default'] == ['dense', 'bm25'] and offered['text']['default'] == [
            'bm25'
        ]
        assert hits('dense') == hits('dense', system='hybrid') == hits('dense', system='dense,bm25')
        weighted = {'system': 'dense,bm25', 'fusion': 'interpolation'}
        assert hits('dense', weights='1,0', **weighted) == pytest.approx(own, abs=1e-4)
        assert set(hits('dense', system='ann')) <= {f'd{n}' for n in range(N)}
        assert hits('dense', system='bm25') == hits('text') and len(hits('epic')) == 5
        assert set(hits('dense')) <= set(own) | set(hits('text'))
        weighted = hits(
            'text', k1=0, b=0
        )  # BM25 with k1 = 0 does not count how often a word is there
        spread = max(weighted.values()) - min(
            weighted.values()
        )  # Anserini tells ties apart by a millionth
        assert spread < 1e-4 < max(hits('text').values()) - min(hits('text').values())
        assert (
            client.get('/v1/dense/search', params={'query': TEXT, 'k1': 1, 'b': 1}).status_code
            == 400
        )
        raw = client.get('/v1/dense/doc/d3').json()['doc']  # the passage is the base index's
        assert (
            raw
            == client.get('/v1/epic/doc/d3').json()['doc']
            == client.get('/v1/text/doc/d3').json()['doc']
        )

    def changed(name, **values):
        return indexes[name].model_copy(update=values)

    dense = indexes['dense']
    text = indexes['text']
    for settings, says in (
        ({'dense': dense}, "its base_index 'text' has to be a Lucene index"),
        (
            {'dense': changed('dense', base_index='epic'), 'epic': indexes['epic']},
            'has to be a Lucene index',
        ),
        (
            {'dense': changed('dense', base_index=None)},
            'name the Lucene index that does as its base_index',
        ),
        ({'text': changed('text', ray='auto')}, 'Ray searches dense bundles only'),
        ({name: changed('dense', ray='auto') for name in 'ab'}, "'a' and 'b' name a Ray cluster"),
        (
            {'dense': changed('dense', ray='127.0.0.1:1'), 'text': text},
            'nothing answers at Ray address 127.0.0.1:1',
        ),
        ({'text': changed('text', path=str(folder / 'nowhere'))}, 'neither a folder nor an index'),
    ):
        message = _failure(settings)
        assert says in message and '\n' not in message, message

"""Every type of index that a settings file may name, opened and searched over HTTP; and what
cannot be opened.
"""

import pytest
from opened_services import failure_of
from ready_services import ready_client

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.serve.settings import ServeSettings, read_settings
from pyserini_repbert.systems.epic.encoder import EpicEncoder

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

N = 640
CONFIG = """
indexes:
  dense: {path: bundle, base_index: text}
  theirs: {path: faiss, index_type: faiss, encoder: encoder, base_index: text}
  epic: {path: impact, index_type: impact}
  text: {path: lucene, index_type: tf}
rerankers: []
"""
TEXT = 'cat dog'
# The catalog's that search such an index.
SPARSE = ['bm25', 'bm25-tuned', 'bm25+rm3', 'bm25+rocchio', 'ql', 'ql+rm3', 'sdm']


@pytest.fixture
def folder(tiny_checkpoint, tiny_epic, corpus_file, tmp_path):
    """A bundle without texts; Pyserini's layout of it; Lucene's of text and of impacts."""
    corpus = open_corpus(corpus_file(N))
    encode_corpus(corpus, RepBertDocumentEncoder(tiny_checkpoint('encoder')), tmp_path / 'bundle')
    export_faiss(DenseBundle(tmp_path / 'bundle'), tmp_path / 'faiss')
    build_lucene_index(corpus, tmp_path / 'lucene')
    encode_corpus(corpus, EpicEncoder(tiny_epic()), tmp_path / 'vectors', prune=15, store_text=True)
    arguments = ['lucene', '--variant', 'epic-impact', '--vectors', str(tmp_path / 'vectors')]
    assert command.run(index_command, [*arguments, '--output', str(tmp_path / 'impact')]) == 0
    (tmp_path / 'serve.yaml').write_text(CONFIG, encoding='utf-8')
    return tmp_path


@pytest.fixture
def indexes(folder):
    """The settings of all of them, by alias."""
    return read_settings(folder / 'serve.yaml').indexes


@pytest.fixture
def service(indexes):
    """A client of a service of all of them."""
    with ready_client(ServeSettings(indexes=indexes)) as client:
        yield client


def _scores(service, index, **parameters):
    """{docid: score} of five hits."""
    parameters = {'query': TEXT, 'hits': 5, **parameters}
    answer = service.get(f'/v1/{index}/search', params=parameters)
    assert answer.status_code == 200, answer.text
    return {hit['docid']: hit['score'] for hit in answer.json()['candidates']}


def _spread(scores):
    return max(scores.values()) - min(scores.values())


def test_each_type_offers_its_systems(service):
    offered = {index['name']: index for index in service.get('/v1/indexes').json()['indexes']}
    assert {name: index['index_type'] for name, index in offered.items()} == {
        'dense': 'dense',
        'theirs': 'faiss',
        'epic': 'impact',
        'text': 'tf',
    }
    assert {name: index['systems'] for name, index in offered.items()} == {
        'dense': ['dense', *SPARSE],
        'theirs': ['dense', *SPARSE],
        'epic': ['epic'],
        'text': SPARSE,
    }
    assert {index['passages'] for index in offered.values()} == {N}
    # A search that names no systems is answered by vectors and text.
    assert offered['dense']['default'] == ['dense', 'bm25']
    assert offered['text']['default'] == ['bm25']


def test_each_system_searches(service):
    dense = _scores(service, 'dense', system='dense')
    text = _scores(service, 'text')
    assert _scores(service, 'theirs', system='dense') == pytest.approx(dense, abs=1e-4)
    assert _scores(service, 'dense', system='bm25') == text
    assert len(_scores(service, 'epic')) == 5

    default = _scores(service, 'dense')
    assert default == _scores(service, 'dense', system='hybrid')
    assert default == _scores(service, 'dense', system='dense,bm25')
    assert set(default) <= set(dense) | set(text)

    dense_alone = {'fusion': 'interpolation', 'weights': '1,0', 'normalize': 'none'}
    weighted = _scores(service, 'dense', system='dense,bm25', **dense_alone)
    assert weighted == pytest.approx(dense, abs=1e-4)


def test_k1_and_b_are_bm25s(service):
    # With k1 = 0, BM25 does not count how often a word is there. Anserini tells ties apart by a
    # millionth.
    assert _spread(_scores(service, 'text', k1=0, b=0)) < 1e-4 < _spread(_scores(service, 'text'))
    parameters = {'query': TEXT, 'k1': 1, 'b': 1}
    assert service.get('/v1/dense/search', params=parameters).status_code == 400


def test_the_passage_is_the_base_indexs(service):
    text = service.get('/v1/text/doc/d3').json()['doc']
    assert service.get('/v1/dense/doc/d3').json()['doc'] == text
    assert service.get('/v1/epic/doc/d3').json()['doc'] == text


def test_what_cannot_be_opened(indexes, folder):
    def changed(name, **values):
        return indexes[name].model_copy(update=values)

    epic = indexes['epic']
    no_lucene = "its base_index 'text' has to be a Lucene index"
    assert no_lucene in failure_of({'dense': indexes['dense']})
    on_epic = changed('dense', base_index='epic')
    assert 'has to be a Lucene index' in failure_of({'dense': on_epic, 'epic': epic})
    without_base = changed('dense', base_index=None)
    assert 'name the Lucene index that does as its base_index' in failure_of(
        {'dense': without_base}
    )
    nowhere = changed('text', path=str(folder / 'nowhere'))
    assert 'neither a folder nor an index' in failure_of({'text': nowhere})


def test_what_ray_cannot_search(indexes):
    def on_ray(name, address='auto'):
        return indexes[name].model_copy(update={'ray': address})

    assert 'Ray searches dense bundles only' in failure_of({'text': on_ray('text')})
    twice = {'a': on_ray('dense'), 'b': on_ray('dense')}
    assert "'a' and 'b' name a Ray cluster" in failure_of(twice)
    unanswered = {'dense': on_ray('dense', '127.0.0.1:1'), 'text': indexes['text']}
    assert 'nothing answers at Ray address 127.0.0.1:1' in failure_of(unanswered)

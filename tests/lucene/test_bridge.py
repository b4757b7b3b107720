"""Pyserini's imports, topics and tables, of 1.6 and of 2.x."""

import io
import json
import os
import sys
import types
import urllib.request
from email.message import Message
from urllib.error import URLError
from urllib.response import addinfourl

import pytest

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.lucene import compat, jvm, pyserini_names, tables
from pyserini_repbert.lucene.published import published_file
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.record import versions


def test_placeholder_key_lives_as_long_as_the_import(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    with compat.placeholder_openai_key():
        assert os.environ['OPENAI_API_KEY']
    assert 'OPENAI_API_KEY' not in os.environ


def test_a_key_that_is_set_stays(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'mine')
    with compat.placeholder_openai_key():
        assert os.environ['OPENAI_API_KEY'] == 'mine'
    assert os.environ['OPENAI_API_KEY'] == 'mine'


def test_an_error_restores_the_key(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', '')
    with pytest.raises(KeyError), compat.placeholder_openai_key():
        raise KeyError
    assert os.environ['OPENAI_API_KEY'] == ''


@pytest.mark.jvm
def test_modules_are_listed_without_importing_pyserini():
    loaded = {name for name in sys.modules if name.startswith('pyserini.')}
    names = compat.runnable_modules()
    assert 'pyserini.search.faiss' in names
    assert 'pyserini.search.lucene' in names
    assert names == sorted(names)
    assert {name for name in sys.modules if name.startswith('pyserini.')} == loaded


@pytest.mark.jvm
def test_registries_of_the_installed_version(tmp_path, monkeypatch):
    """What the version really has: each table, and where files of topics and judgments are."""
    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path))
    prebuilt = compat.prebuilt_tables()
    assert 'msmarco-v1-passage' in prebuilt['sparse']
    assert 'msmarco-v1-passage.unicoil' in prebuilt['impact']
    search = compat.import_pyserini('pyserini.search._base')
    for kind in ('topics', 'qrels'):
        assert 'dl19-passage' in compat.named_files(search, kind)
        path = compat.path_of(search, kind, 'dl19-passage')
        assert path.name == f'{kind}.dl19-passage.txt'
        assert path.is_absolute()


@pytest.mark.jvm
@pytest.mark.skipif(
    not versions().get('pyserini', '').startswith('1.'), reason='2.x fetches its tables'
)
def test_every_name_of_pyserini_has_an_address_that_stays():
    search = compat.import_pyserini('pyserini.search._base')
    for kind in ('topics', 'qrels'):
        for name in compat.named_files(search, kind):
            published = published_file(kind, name)
            assert published.file == compat.path_of(search, kind, name).name


@pytest.mark.jvm
@pytest.mark.slow
def test_encoders_import_without_a_key(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    queries, documents = compat.encoder_maps()
    assert 'ance' in queries
    assert 'ance' in documents
    assert 'OPENAI_API_KEY' not in os.environ


def test_files_and_catalog_names_start_no_jvm(tmp_path, monkeypatch):
    (tmp_path / 'topics.tsv').write_text('1\tfirst\n')
    (tmp_path / 'qrels.txt').write_text('1 0 d 2\n')
    monkeypatch.setattr(jvm, 'start_jvm', lambda *options: pytest.fail('started a virtual machine'))
    monkeypatch.setattr(
        catalog,
        'file',
        lambda kind, name: tmp_path / f'{kind}.{"tsv" if kind == "topics" else "txt"}',
    )
    assert load_topics(str(tmp_path / 'topics.tsv')) == [Query('1', 'first')]
    assert load_qrels(str(tmp_path / 'qrels.txt')) == {'1': {'d': 2}}
    assert load_topics('named') == [Query('1', 'first')]
    assert load_qrels('named') == {'1': {'d': 2}}


class JavaPath:
    """Stands for the Java classes that know where Anserini keeps its files."""

    def __init__(self, folder):
        self.folder = folder

    def of(self, path):
        return path

    def getNewTopicsAbsPath(self, path):
        return types.SimpleNamespace(toString=lambda: str(self.folder / path))

    getNewQrelAbsPath = getNewTopicsAbsPath


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Pyserini's module of topics with two names, of which one can be read."""
    (tmp_path / 'qrels.one.txt').write_text('19 Q0 77 2\n')
    java = JavaPath(tmp_path)
    module = types.SimpleNamespace(
        topics_mapping={
            name: types.SimpleNamespace(path=f'topics.{name}.txt') for name in ('one', 'two')
        },
        qrels_mapping={'one': types.SimpleNamespace(path='qrels.one.txt')},
        get_topics=lambda name: {
            19: {'title': 'some  question'},
            2: {'title': 'first one'},
            30: {'title': None},
        },
        get_qrels_file=lambda name: str(tmp_path / 'qrels.one.txt'),
        JPath=java,
        JTopicReader=java,
        JRelevanceJudgments=java,
    )
    monkeypatch.setattr(pyserini_names, 'import_pyserini', lambda name: module)
    monkeypatch.setattr(pyserini_names, 'quiet_java', lambda: None)
    monkeypatch.delenv('HF_HUB_OFFLINE', raising=False)
    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE', raising=False)
    return module


def test_pyserini_topics_get_string_qids_in_order(registry):
    assert load_topics('one') == [
        Query('2', 'first one'),
        Query('19', 'some question'),
        Query('30', ''),
    ]
    registry.get_topics = lambda name: {7: {'title': 'b'}, 'A10': {'title': 'a'}}
    assert [query.qid for query in load_topics('one')] == ['7', 'A10']
    assert load_qrels('one') == {'19': {'77': 2}}


@pytest.mark.parametrize(
    ('fields', 'question'),
    [
        ({'query': 'coronavirus heart impacts', 'question': 'are complications likely?'}, None),
        ({'query_txt': 'coronavirus heart impacts', 'query_modality': 'text'}, None),
        ({'title': 'null', 'query': 'another'}, 'null'),
    ],
)
def test_questions_of_topics_without_a_title(registry, fields, question):
    registry.get_topics = lambda name: {1: fields}
    assert load_topics('one') == [Query('1', question or 'coronavirus heart impacts')]


@pytest.mark.parametrize(
    ('fields', 'content'),
    [
        ({'vector': '[0.03,0.007]'}, 'vectors of queries'),
        ({'query_txt': 'null', 'query_img_path': 'images/1.jpg'}, 'queries of another kind'),
    ],
)
def test_topics_without_text_are_refused(registry, fields, content):
    registry.get_topics = lambda name: {1: fields, 2: fields}
    with pytest.raises(InputError, match=f"topics 'one' are {content}, without text: give"):
        load_topics('one')


def test_docids_of_articles_are_no_questions(registry):
    registry.get_topics = lambda name: {321: {'title': '9171debc', 'url': 'https://a.org/b'}}
    with pytest.raises(InputError, match=r"topics 'one': a topic is the docid of an article"):
        load_topics('one')


COMMIT = '367560b4de7d9c3486f666dcc2df7783ca7758f2'
HOST = 'https://raw.githubusercontent.com/castorini'
ADDRESS = f'{HOST}/prebuilt-indexes/{COMMIT}/lucene/other-inverted.json'
TABLE = [{'name': 'cacm', 'md5': '0'}]


@pytest.fixture
def network(monkeypatch):
    """Stands for the network: `answers` by address, `asked` in order; what it does not know is
    unreachable.
    """
    monkeypatch.delenv('PYSERINI_SEED')
    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE')
    monkeypatch.delenv('HF_HUB_OFFLINE', raising=False)

    class Network:
        def __init__(self):
            self.answers = {ADDRESS: json.dumps(TABLE).encode()}
            self.asked = []

        def open(self, handler, request):
            self.asked.append(request.full_url)
            if request.full_url not in self.answers:
                raise URLError('no route to host')
            answer = addinfourl(
                io.BytesIO(self.answers[request.full_url]), Message(), request.full_url, 200
            )
            answer.msg = 'OK'
            return answer

    network = Network()
    monkeypatch.setattr(
        urllib.request.HTTPSHandler, 'https_open', lambda *asked: network.open(*asked)
    )
    monkeypatch.setattr(urllib.request, '_opener', None)
    return network


def opened(address=ADDRESS):
    """The table as a module of Pyserini reads it that is imported now."""
    tables.keep_tables()
    with urllib.request.urlopen(address, timeout=10) as response:
        return json.load(response)


def test_a_table_is_fetched_once_and_then_there_without_a_network(network):
    assert opened() == TABLE
    network.answers = {}
    assert opened() == TABLE
    assert network.asked == [ADDRESS]
    kept = tables.tables_folder() / 'prebuilt-indexes' / COMMIT / 'lucene/other-inverted.json'
    assert json.loads(kept.read_text()) == TABLE


def test_an_unavailable_table_is_one_line_with_the_way_to_it(network):
    network.answers = {}
    with pytest.raises(MissingResourceError) as caught:
        opened()
    message = str(caught.value)
    assert (
        'lucene/other-inverted.json' in message and f'{HOST}/prebuilt-indexes/{COMMIT}/' in message
    )
    assert '(no route to host)' in message and f'kept in {tables.tables_folder()}' in message


def test_a_table_is_not_fetched_offline(network, monkeypatch):
    network.answers = {}
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '1')
    with pytest.raises(MissingResourceError, match='downloads are off'):
        opened()
    assert network.asked == []


def test_what_is_no_table_is_not_kept(network):
    """A hotel's log-in page, or a connection that ended early."""
    network.answers = {ADDRESS: b'<html>please log in</html>'}
    with pytest.raises(MissingResourceError):
        opened()
    assert not list(tables.tables_folder().rglob('*'))
    network.answers = {ADDRESS: json.dumps(TABLE).encode()}
    assert opened() == TABLE
    (
        tables.tables_folder() / 'prebuilt-indexes' / COMMIT / 'lucene/other-inverted.json'
    ).write_text('[{"na')
    assert opened() == TABLE, 'a damaged copy is fetched again'

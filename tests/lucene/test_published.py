"""Topics and judgments by Pyserini's names, fetched from a commit, whatever Pyserini is here."""

import hashlib
import re
import types

import pytest
from redirected import redirected
from web_stub import Web, running

from pyserini_repbert.errors import DamagedFileError, MissingResourceError, UnknownNameError
from pyserini_repbert.lucene import published, pyserini_names
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query

QRELS = b'19335 0 1017759 0\n19335 0 1082489 2\n'
TOPICS = b'19335\tanthropological definition of environment\n'
COMMIT = '0' * 40
SITE = f'https://raw.githubusercontent.com/castorini/eval/{COMMIT}'


def test_the_table_has_a_commit_and_checksums():
    addresses = published.published_addresses()
    assert all(re.search('/castorini/eval/[0-9a-f]{40}/', address) for address in addresses)
    files = []
    for kind in ('topics', 'qrels'):
        for name in published.published_names(kind):
            file = published.published_file(kind, name)
            assert file.address in addresses and bool(file.reader) == (kind == 'topics')
            files.append(file)
    known = [file for file in files if file.md5 is not None]
    assert len(files) > 1200 and len(known) / len(files) > 0.9


def test_topics_that_were_removed_have_an_older_commit():
    file = published.published_file('topics', 'beir-v1.0.0-nfcorpus.test.splade-pp-ed')
    path = 'b6a89ced27a9742f45ac51ffb4397664cee98e9d/topics-and-qrels'
    assert file.address.endswith(f'/castorini/eval/{path}/{file.file}') and file.md5


@pytest.mark.parametrize('name', ['dl19-passage', 'dl20', 'robust04', 'msmarco-passage-dev-subset'])
def test_names_of_researchers_are_there(name):
    assert published.published_file('qrels', name) or published.published_file('topics', name)


@pytest.fixture
def table(monkeypatch):
    """A table of one name, 'small'; returns it."""
    table = {
        'repository': 'castorini/eval',
        'commit': COMMIT,
        'topics': {'small': {'path': 'topics.small.txt', 'reader_class': 'TsvInt'}},
        'qrels': {'small': 'qrels.small.txt'},
        'files': {
            'topics/topics.small.txt': {'md5': hashlib.md5(TOPICS).hexdigest(), 'size': 46},
            'qrels/qrels.small.txt': {'md5': hashlib.md5(QRELS).hexdigest(), 'size': 37},
        },
    }
    monkeypatch.setattr(published, '_table', lambda: table)
    return table


@pytest.fixture
def web(table, monkeypatch):
    """The two files, on a server here; downloads are allowed."""
    for name in ('PYSERINI_REPBERT_OFFLINE', 'HF_HUB_OFFLINE', 'http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    with running(Web()) as started:
        started.add(f'{SITE}/topics/topics.small.txt', TOPICS)
        started.add(f'{SITE}/qrels/qrels.small.txt', QRELS)
        with redirected(started.address):
            yield started


@pytest.fixture
def pyserini(monkeypatch, tmp_path):
    """use(*names): a Pyserini 2 that has these names, and reads files with a tab in their lines."""

    def read(reader, path):
        assert reader in ('', 'io.anserini.search.topicreader.TsvInt')
        qid, text = (tmp_path / path).read_text().strip().split('\t')
        return {int(qid): {'title': text}}

    def use(*names):
        folder = tmp_path / 'pyserini'
        folder.mkdir()
        module = types.SimpleNamespace(
            topics_mapping={name: {'path': f'topics.{name}.txt'} for name in names},
            qrels_mapping={name: f'qrels.{name}.txt' for name in names},
            get_topics=lambda name: read('', folder / f'topics.{name}.txt'),
            load_topics_from_file=lambda path, reader: read(reader, path),
            _get_topics_cache_path=lambda: folder,
            _get_qrels_cache_path=lambda: folder,
        )
        monkeypatch.setattr(pyserini_names, 'import_pyserini', lambda name: module)
        monkeypatch.setattr(pyserini_names, 'quiet_java', lambda: None)
        return folder

    return use


def test_judgments_need_no_pyserini(web, monkeypatch):
    monkeypatch.setattr(pyserini_names, 'import_pyserini', lambda name: pytest.fail('imported'))
    for _ in range(2):
        assert load_qrels('small') == {'19335': {'1017759': 0, '1082489': 2}}
    assert len(web.asked) == 1


@pytest.mark.parametrize('names', [('small',), ('other',)])
def test_topics_of_a_name_that_pyserini_has_or_lacks(web, pyserini, names):
    pyserini(*names)
    expected = [Query('19335', 'anthropological definition of environment')]
    for _ in range(2):
        assert load_topics('small') == expected
    assert len(web.asked) == 1


def test_what_pyserini_fetched_before_is_used_without_a_network(table, pyserini):
    folder = pyserini('small')
    (folder / 'qrels.small.txt').write_bytes(QRELS)
    assert load_qrels('small') == {'19335': {'1017759': 0, '1082489': 2}}


def test_without_a_network_the_address_is_said(table, pyserini):
    pyserini('small')
    for load in (load_qrels, load_topics):
        with pytest.raises(MissingResourceError, match=rf'downloads are off: fetch .*{SITE}/'):
            load('small')


def test_another_content_is_refused(web):
    web.add(f'{SITE}/qrels/qrels.small.txt', b'other')
    with pytest.raises(DamagedFileError, match='has MD5'):
        load_qrels('small')


def test_a_name_of_the_table_is_proposed(table, pyserini):
    pyserini('other')
    with pytest.raises(UnknownNameError, match=r"did you mean 'small'\?"):
        load_topics('smal')

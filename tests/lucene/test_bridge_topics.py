"""Topics and judgments by name: files and catalog names without Java, Pyserini's names from its cache, offline."""

import types

import pytest

from pyserini_repbert import catalog
from pyserini_repbert.lucene import jvm, topics
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query


def test_files_and_catalog_names_start_no_jvm(tmp_path, monkeypatch):
    (tmp_path / 'topics.tsv').write_text('1\tfirst\n')
    (tmp_path / 'qrels.txt').write_text('1 0 d 2\n')
    monkeypatch.setattr(jvm, 'start_jvm', lambda *options: pytest.fail('started a virtual machine'))
    monkeypatch.setattr(catalog, 'file', lambda kind, name: tmp_path / f'{kind}.{"tsv" if kind == "topics" else "txt"}')
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
        topics_mapping={name: types.SimpleNamespace(path=f'topics.{name}.txt') for name in ('one', 'two')},
        qrels_mapping={'one': types.SimpleNamespace(path='qrels.one.txt')},
        get_topics=lambda name: {19: {'title': 'some  question'}, 2: {'title': 'first one'}, 30: {'title': None}},
        get_qrels_file=lambda name: str(tmp_path / 'qrels.one.txt'),
        JPath=java,
        JTopicReader=java,
        JRelevanceJudgments=java,
    )
    monkeypatch.setattr(topics, 'import_pyserini', lambda name: module)
    monkeypatch.setattr(topics, 'quiet_java', lambda: None)
    monkeypatch.delenv('HF_HUB_OFFLINE', raising=False)
    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE', raising=False)
    return module


def test_pyserini_topics_get_string_qids_in_order(registry):
    assert load_topics('one') == [Query('2', 'first one'), Query('19', 'some question'), Query('30', '')]
    registry.get_topics = lambda name: {7: {'title': 'b'}, 'A10': {'title': 'a'}}
    assert [query.qid for query in load_topics('one')] == ['7', 'A10']
    assert load_qrels('one') == {'19': {'77': 2}}

"""Java resolves relative paths by the folder that it started in; the program may be elsewhere."""

import json
from pathlib import Path

import pytest

from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene.impacts import ImpactSearcher
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.jvm import java_class
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

pytestmark = pytest.mark.jvm


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The program is in a folder in which Java did not start."""
    java_class('java.lang.String')
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures('elsewhere')
def test_a_relative_index_is_written_and_searched():
    build_lucene_index([('d1', 'snails eat salad'), ('d2', 'sour dough')], Path('words'))
    searcher = LuceneSparseSearcher('words')
    assert [hit.docid for hit in searcher.search('salad', 10)] == ['d1']
    searcher.close()


@pytest.mark.usefixtures('elsewhere')
def test_relative_impacts_are_written_and_searched():
    class Encoder:
        def encode(self, query):
            return {query: 1}

    folder = Path('impacts')
    folder.mkdir()
    with LuceneWriter(folder, impact=True) as writer:
        writer.add([json.dumps({'id': 'd1', 'contents': '', 'vector': {'salad': 3}})])
    searcher = ImpactSearcher('impacts', Encoder())
    assert [hit.docid for hit in searcher.search('salad', 10)] == ['d1']
    searcher.close()

"""Lucene's index of a generation is opened once for all filters, and closed with the index."""

import pytest

from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine

pytestmark = pytest.mark.jvm


@pytest.fixture
def opened(monkeypatch):
    """The BM25 rankings that were opened."""
    opened = []
    opening = Bm25DocumentSearcher.__init__

    def noted(searcher, *given):
        opened.append(searcher)
        opening(searcher, *given)

    monkeypatch.setattr(Bm25DocumentSearcher, '__init__', noted)
    return opened


@pytest.fixture
def index(open_collection, opened):
    """A collection of two documents, with BM25 open."""
    with open_collection(sparse='bm25') as collection:
        collection.sync([{'id': 'a', 'text': 'cat sat', 'year': 1}, {'id': 'b', 'text': 'cat ran'}])
    index = kind_of(str(collection.folder)).open(str(collection.folder), SearchOptions())
    index.ranking('bm25', Machine()).search('cat')
    yield index
    index.close()


def test_filters_share_an_open_index(index, opened):
    n_opened = len(opened)
    for filter, docids in {'year:1': ['a'], 'NOT year:1': ['b'], 'year:2': []}.items():
        ranking = index.within(DocumentFilter(filter)).ranking('bm25', Machine())
        assert [hit.docid for hit in ranking.search('cat')] == docids
    assert len(opened) == n_opened


def test_an_index_that_is_closed_closes_its_rankings(index, opened):
    index.close()
    for ranking in opened:
        with pytest.raises(InputError, match='closed'):
            ranking.search('cat')

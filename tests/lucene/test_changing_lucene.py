"""Adding documents to a Lucene index, and deleting some."""

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.updating import LuceneUpdate

pytestmark = pytest.mark.jvm


def test_words_are_found_whatever_their_characters(tmp_path):
    texts = {'a': 'fish 😀 été', 'b😀': 'nul\0inside', 'c': '日本語'}
    with LuceneUpdate(tmp_path, 'en') as update:
        update.add(texts.items())
        update.finish(most_dead=0.2)
    searcher = LuceneSparseSearcher(tmp_path)
    for query, docid in {'😀': 'a', 'été': 'a', 'inside': 'b😀', '日本': 'c'}.items():
        assert [hit.docid for hit in searcher.search(query, 10)] == [docid]
    searcher.close()


def test_progress_counts_all_documents(tmp_path, monkeypatch):
    monkeypatch.setattr('pyserini_repbert.lucene.updating._AT_ONCE', 2)
    counts = []
    with LuceneUpdate(tmp_path, 'en') as update:
        update.add([(name, 'text') for name in 'abcde'], counts.append)
        assert update.finish(most_dead=0.2).documents == 5
    assert counts == [2, 2, 1]


def test_a_docid_that_lucene_cannot_hold_is_named(tmp_path):
    docid = 'y' * 40_000
    with (
        pytest.raises(InputError, match=r"refused document 'y{80}': .* 32,766 bytes"),
        LuceneUpdate(tmp_path, 'en') as update,
    ):
        update.add([('a', 'text'), (docid, 'text')])

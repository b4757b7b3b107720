"""Sparse search on a small index: order, empty answers, settings, stored text, names that are
not indexes.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.lucene import pyserini_names, searcher as lucene_searcher, sparse_settings
from pyserini_repbert.lucene.jvm import java_class, lucene_major
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings

TEXTS = {'z1': 'cats sleep', 'b2': 'dogs bark at cats', 'a3': 'cats sleep', 'm4': 'été 😀 fish'}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    from pyserini_repbert.lucene.indexer import LuceneWriter

    path = tmp_path_factory.mktemp('lucene') / 'index'
    path.mkdir()
    with LuceneWriter(path) as writer:
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in TEXTS.items()])
    return path


@pytest.mark.jvm
def test_ties_come_in_order_of_docid(folder):
    hits = LuceneSparseSearcher(folder).search('cats', k=10)
    assert [hit.docid for hit in hits] == ['a3', 'z1', 'b2']
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.docid for hit in LuceneSparseSearcher(folder).search('cats', k=1)] == ['a3']


@pytest.mark.jvm
@pytest.mark.parametrize('sdm', [False, True])
def test_queries_without_answers(folder, sdm):
    searcher = LuceneSparseSearcher(folder, SparseSettings(sdm=sdm))
    for query in ('the of', '?!', 'zebra'):
        assert searcher.search(query) == []
    for query in ('', '  \t'):
        with pytest.raises(InputError, match='the query is empty: give a question'):
            searcher.search(query)
    batch = searcher.batch_search(['', 'dogs', 'zebra', 'the'], ['4', '3', '2', '1'], threads=2)
    assert list(batch) == ['4', '3', '2', '1']
    assert [[hit.docid for hit in hits] for hits in batch.values()] == [[], ['b2'], [], []]
    assert searcher.batch_search([], []) == {}


@pytest.mark.jvm
def test_batches_answer_as_single_queries_do(folder, monkeypatch):
    monkeypatch.setattr(lucene_searcher, 'HITS_AT_ONCE', 4)
    searcher = LuceneSparseSearcher(folder, SparseSettings(model='ql', mu=10))
    queries = ['cats', 'sleep', 'bark', 'été', 'fish cats']
    batch = searcher.batch_search(queries, [f'q{n}' for n in range(5)], k=3, threads=2)
    for query, hits in zip(queries, batch.values(), strict=True):
        alone = searcher.search(query, k=3)
        found = [(hit.docid, hit.score) for hit in alone]
        assert found == [(hit.docid, hit.score) for hit in hits]
    assert all(batch.values())


@pytest.mark.jvm
def test_k_larger_than_the_index_and_stored_text(folder):
    searcher = LuceneSparseSearcher(folder)
    assert searcher.size == 4
    assert len(searcher.search('cats', k=10**9)) == 3
    assert searcher.texts(['m4', 'nope', 'm4']) == ['été 😀 fish', None, 'été 😀 fish']
    assert searcher.texts([]) == []
    assert dict(searcher.passages()) == TEXTS


@pytest.mark.jvm
def test_threads_share_a_searcher_and_leave_nothing_behind(folder):
    searcher = LuceneSparseSearcher(folder)
    expected = {query: searcher.search(query) for query in ('cats', 'dogs', 'fish', 'sleep bark')}
    queries = list(expected) * 25
    before = java_class('java.lang.Thread').activeCount()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(searcher.search, queries)) == [expected[query] for query in queries]
    assert java_class('java.lang.Thread').activeCount() == before


@pytest.mark.jvm
def test_index_without_positions_vectors_or_text(tmp_path):
    indexer = java_class('io.anserini.index.SimpleIndexer')
    bare = indexer(
        ['-input', '', '-collection', 'JsonCollection', '-index', str(tmp_path / 'bare')]
    )
    bare.addRawDocument('{"id": "1", "contents": "cats sleep"}')
    bare.close()
    searcher = LuceneSparseSearcher(tmp_path / 'bare')
    assert [hit.docid for hit in searcher.search('cats')] == ['1']
    with pytest.raises(MismatchError, match='stores no passages'):
        searcher.texts(['1'])
    with pytest.raises(MismatchError, match='neither document vectors nor raw JSON'):
        LuceneSparseSearcher(tmp_path / 'bare', SparseSettings(rm3=True))
    with pytest.raises(MismatchError, match='has no positions, which SDM needs'):
        LuceneSparseSearcher(tmp_path / 'bare', SparseSettings(sdm=True)).search('cats sleep')


@pytest.mark.jvm
def test_an_index_of_another_lucene():
    """Made by Lucene 10.5: read by Pyserini 2.x, and refused in one line by the Lucene 9 of 1.6."""
    folder = Path(__file__).with_name('lucene10-index')
    if lucene_major() >= 10:
        assert LuceneSparseSearcher(folder).texts(['1']) == ['cats sleep']
    else:
        with pytest.raises(
            MismatchError, match=r'another Lucene than the 9 .* in the future: 10\): build it again'
        ):
            LuceneSparseSearcher(folder)


def test_settings_that_an_index_was_built_for(tmp_path):
    assert sparse_settings.default_settings(tmp_path) == SparseSettings()
    assert sparse_settings.built_variant(tmp_path) is None
    for damaged in ('[]', '{', '{"variant": 3, "k1": [], "b": 0}'):
        (tmp_path / sparse_settings.MANIFEST).write_text(damaged)
        assert sparse_settings.default_settings(tmp_path) == SparseSettings()
        assert sparse_settings.built_variant(tmp_path) is None
    (tmp_path / sparse_settings.MANIFEST).write_text('{"variant": "bm25"}')
    assert sparse_settings.built_variant(tmp_path) == 'bm25'
    assert sparse_settings.default_settings(tmp_path) == SparseSettings()
    (tmp_path / sparse_settings.MANIFEST).write_text('{"variant": "deepct", "k1": 10, "b": 0.9}')
    assert sparse_settings.default_settings(tmp_path) == SparseSettings(k1=10.0, b=0.9)


@pytest.mark.jvm
def test_a_prebuilt_index_that_is_there_needs_no_download(tmp_path, monkeypatch):
    """CACM's archive has another name than its address says."""
    from pyserini_repbert.lucene.compat import prebuilt_tables

    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path))
    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE')
    entry = prebuilt_tables()['sparse']['cacm']
    with pytest.raises(
        MissingResourceError,
        match=r'have it downloaded, or fetch .*cacm.* \(2\.3 MB\) and unpack it',
    ) as refused:
        pyserini_names.prebuilt_index('cacm')
    assert refused.value.parameters == ('download',)
    folder = tmp_path / 'indexes' / f'{entry["filename"].removesuffix(".tar.gz")}.{entry["md5"]}'
    folder.mkdir(parents=True)
    assert pyserini_names.prebuilt_index('cacm') == folder


@pytest.mark.jvm
def test_an_index_that_lucene_did_not_finish_is_an_error(tmp_path):
    """Anserini logs what fails in closing, a full disk say, and closes."""
    from pyserini_repbert.errors import JavaError
    from pyserini_repbert.lucene.indexer import LuceneWriter

    with (
        pytest.raises(JavaError, match='could not finish the index'),
        LuceneWriter(tmp_path / 'index') as writer,
    ):
        writer.add(['{"id": "a", "contents": "x"}'])
        close = writer._java.close

        class Silent:
            def close(self):
                close()
                for path in (tmp_path / 'index').glob('segments_*'):
                    path.unlink()

        writer._java = Silent()


@pytest.mark.jvm
def test_a_docid_that_lucene_cannot_hold_is_refused(tmp_path):
    from pyserini_repbert.lucene.indexer import LuceneWriter

    documents = ['{"id": "a", "contents": "x"}', '{"id": "' + 'y' * 40_000 + '", "contents": "x"}']
    with (
        pytest.raises(InputError, match='refused 1 of 2 documents .* at most 32,766 bytes'),
        LuceneWriter(tmp_path / 'index') as writer,
    ):
        writer.add(documents)

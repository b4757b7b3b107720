"""Sparse search on a small index: order, empty answers, settings, stored text."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.lucene import (
    index_record,
    json_values,
    pyserini_names,
    searcher as lucene_searcher,
    sparse_settings,
)
from pyserini_repbert.lucene.jvm import java_class, lucene_major
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.ranking import NO_WORD, Query

TEXTS = {'z1': 'cats sleep', 'b2': 'dogs bark at cats', 'a3': 'cats sleep', 'm4': 'été 😀 fish'}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    from pyserini_repbert.lucene.indexer import LuceneWriter

    path = tmp_path_factory.mktemp('lucene') / 'index'
    path.mkdir()
    with LuceneWriter(path) as writer:
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in TEXTS.items()])
    return path


def test_a_folder_that_is_made_meanwhile_is_no_file(tmp_path, monkeypatch):
    """It was looked at twice, and what was a folder by then was called a file."""
    folder = tmp_path / 'lucene/000001'
    look = Path.stat

    def make_after(path, **options):
        try:
            return look(path, **options)
        finally:
            if path == folder:
                os.makedirs(folder, exist_ok=True)

    monkeypatch.setattr(Path, 'stat', make_after)
    with pytest.raises(InputError, match='there is no folder'):
        lucene_searcher.index_folder(folder)
    with pytest.raises(InputError, match='holds no Lucene index'):
        lucene_searcher.index_folder(folder)
    file = tmp_path / 'file'
    file.touch()
    with pytest.raises(InputError, match='is a file, the folder'):
        lucene_searcher.index_folder(file)


@pytest.mark.jvm
def test_a_ranking_knows_what_words_score_by_chance(folder):
    """Of 'cats', found in most texts, any hit may be chance; of 'bark', the one hit is none."""
    searcher = LuceneSparseSearcher(folder)
    common = searcher.rank([Query('q', 'cats')])['q']
    rare = searcher.rank([Query('q', 'bark')])['q']
    assert common.background.score == rare.background.score == 0
    # No text has more of chance than all words of the question, once each.
    assert common.background.chance == pytest.approx(searcher.greatest_score('cats') / 1.9)
    assert 0 < rare.background.chance <= rare.scores[0] + 0.1
    batch = searcher.rank([Query('q', 'bark'), Query('p', 'cats')])
    assert batch['q'].background == rare.background
    assert batch['p'].background == common.background


@pytest.mark.jvm
@pytest.mark.parametrize('changes', [{'rm3': True}, {'model': 'ql'}])
def test_scores_that_no_weights_explain_have_no_chance(folder, changes):
    ranking = LuceneSparseSearcher(folder, SparseSettings(**changes)).rank([Query('q', 'cats')])
    assert ranking['q'].background == NO_WORD


@pytest.mark.jvm
def test_ties_come_in_order_of_docid(folder):
    hits = LuceneSparseSearcher(folder).search('cats', k=10)
    assert [hit.docid for hit in hits] == ['a3', 'z1', 'b2']
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.docid for hit in LuceneSparseSearcher(folder).search('cats', k=1)] == ['a3']


@pytest.mark.jvm
@pytest.mark.parametrize('sdm', [False, True])
@pytest.mark.parametrize('query', ['the of', '?!', 'zebra'])
def test_queries_without_hits(folder, sdm, query):
    assert LuceneSparseSearcher(folder, SparseSettings(sdm=sdm)).search(query) == []


@pytest.mark.jvm
@pytest.mark.parametrize('query', ['', '  \t'])
def test_a_query_without_text_is_refused(folder, query):
    with pytest.raises(InputError, match='the query is empty: give a question'):
        LuceneSparseSearcher(folder).search(query)


@pytest.mark.jvm
@pytest.mark.parametrize('sdm', [False, True])
def test_topics_of_a_batch_may_have_no_hits(folder, sdm):
    searcher = LuceneSparseSearcher(folder, SparseSettings(sdm=sdm))
    batch = searcher.batch_search(['', 'dogs', 'zebra', 'the'], ['4', '3', '2', '1'], threads=2)
    assert list(batch) == ['4', '3', '2', '1']
    assert [hit.docid for hit in batch.pop('3')] == ['b2']
    assert list(batch.values()) == [[], [], []]


@pytest.mark.jvm
def test_an_empty_batch(folder):
    assert LuceneSparseSearcher(folder).batch_search([], []) == {}


@pytest.mark.jvm
def test_batches_answer_as_single_queries_do(folder, monkeypatch):
    monkeypatch.setattr(lucene_searcher, 'HITS_AT_ONCE', 4)
    searcher = LuceneSparseSearcher(folder, SparseSettings(model='ql', mu=10))
    queries = ['cats', 'sleep', 'bark', 'été', 'fish cats']
    batch = searcher.batch_search(queries, [f'q{n}' for n in range(5)], k=3, threads=2)
    for query, hits in zip(queries, batch.values(), strict=True):
        alone = searcher.search(query, k=3)
        scored = [(hit.docid, hit.score) for hit in alone]
        assert scored == [(hit.docid, hit.score) for hit in hits]
    assert all(batch.values())


@pytest.mark.jvm
def test_many_ids_go_to_java_as_one_text(folder, monkeypatch):
    searcher = LuceneSparseSearcher(folder)
    ids = ['z1', 'm4', 'é😀', 'nope']
    one_by_one = searcher.among(ids).search('cats fish')
    monkeypatch.setattr(json_values, '_CALLED_EACH', 0)
    monkeypatch.setattr(json_values, '_FEW', 0)
    for _ in range(2):
        assert searcher.among(ids).search('cats fish') == one_by_one
    assert [hit.docid for hit in one_by_one] == ['m4', 'z1']


@pytest.mark.jvm
def test_k_larger_than_the_index(folder):
    searcher = LuceneSparseSearcher(folder)
    assert searcher.size == 4
    assert len(searcher.search('cats', k=10**9)) == 3


@pytest.mark.jvm
def test_passages_are_stored(folder):
    searcher = LuceneSparseSearcher(folder)
    assert searcher.texts(['m4', 'nope', 'm4']) == ['été 😀 fish', None, 'été 😀 fish']
    assert searcher.texts([]) == []
    assert dict(searcher.passages()) == TEXTS


@pytest.fixture
def java_threads(monkeypatch):
    """The Java thread of each call of a searcher."""
    found = []
    call = lucene_searcher.calling

    def note_thread(method, *arguments):
        found.append(java_class('java.lang.Thread').currentThread())
        return call(method, *arguments)

    monkeypatch.setattr(lucene_searcher, 'calling', note_thread)
    return found


@pytest.mark.jvm
def test_threads_share_a_searcher_and_leave_nothing_behind(folder, java_threads):
    searcher = LuceneSparseSearcher(folder)
    expected = {query: searcher.search(query) for query in ('cats', 'dogs', 'fish', 'sleep bark')}
    java_threads.clear()
    queries = list(expected) * 25
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(searcher.search, queries)) == [expected[query] for query in queries]
    assert len(java_threads) >= 100
    assert not any(thread.isAlive() for thread in java_threads)


@pytest.fixture(scope='module')
def bare(tmp_path_factory):
    """An index without positions, vectors or text."""
    path = tmp_path_factory.mktemp('bare') / 'index'
    options = ['-input', '', '-collection', 'JsonCollection', '-index', str(path)]
    indexer = java_class('io.anserini.index.SimpleIndexer')(options)
    indexer.addRawDocument('{"id": "1", "contents": "cats sleep"}')
    indexer.close()
    return path


@pytest.mark.jvm
def test_a_bare_index_is_searched(bare):
    assert [hit.docid for hit in LuceneSparseSearcher(bare).search('cats')] == ['1']


@pytest.mark.jvm
def test_a_bare_index_has_no_texts(bare):
    with pytest.raises(MismatchError, match='stores no passages'):
        LuceneSparseSearcher(bare).texts(['1'])


@pytest.mark.jvm
def test_rm3_needs_vectors_or_text(bare):
    with pytest.raises(MismatchError, match='neither document vectors nor raw JSON'):
        LuceneSparseSearcher(bare, SparseSettings(rm3=True))


@pytest.mark.jvm
def test_sdm_needs_positions(bare):
    searcher = LuceneSparseSearcher(bare, SparseSettings(sdm=True))
    with pytest.raises(MismatchError, match='has no positions, which SDM needs'):
        searcher.search('cats sleep')


@pytest.mark.jvm
def test_an_index_of_another_lucene():
    """Made by Lucene 10.5: read by Pyserini 2.x, and refused in one line by the Lucene 9 of 1.6."""
    folder = Path(__file__).with_name('lucene10-index')
    if lucene_major() >= 10:
        assert LuceneSparseSearcher(folder).texts(['1']) == ['cats sleep']
    else:
        with pytest.raises(
            MismatchError, match=r'not built by the Lucene 9 .* in the future: 10\): build it again'
        ):
            LuceneSparseSearcher(folder)


def test_an_index_without_a_record(tmp_path):
    assert sparse_settings.default_settings(tmp_path) == SparseSettings()
    assert index_record.built_variant(tmp_path) is None


@pytest.mark.parametrize('damaged', ['[]', '{', '{"variant": 3, "k1": [], "b": 0}'])
def test_a_damaged_record_says_nothing(tmp_path, damaged):
    (tmp_path / index_record.MANIFEST).write_text(damaged)
    assert sparse_settings.default_settings(tmp_path) == SparseSettings()
    assert index_record.built_variant(tmp_path) is None


def test_a_record_without_constants(tmp_path):
    (tmp_path / index_record.MANIFEST).write_text('{"variant": "bm25"}')
    assert index_record.built_variant(tmp_path) == 'bm25'
    assert sparse_settings.default_settings(tmp_path) == SparseSettings()


def test_a_record_with_constants(tmp_path):
    (tmp_path / index_record.MANIFEST).write_text('{"variant": "deepct", "k1": 10, "b": 0.9}')
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
        match=r'fetch .*cacm.* \(2\.3 MB\)',
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

"""Rocchio's feedback on terms: the expanded query by hand, its settings and its name."""

import json
from math import sqrt

import pytest

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.lucene.indexer import LuceneWriter
from pyserini_repbert.lucene.jvm import java_class
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import Rm3, Rocchio, SparseSettings
from pyserini_repbert.names.sparse import open_sparse

TEXTS = {
    'd1': 'old houses at the river bank',
    'd2': 'old houses in town',
    'd3': 'gardens',
    'd4': 'the river floods',
    'd5': 'towns',
}
# Feedback leaves out what a tenth of all texts has.
OTHERS = {f'other{number}': 'zebra' for number in range(40)}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp('lucene') / 'index'
    path.mkdir()
    with LuceneWriter(path) as writer:
        documents = (TEXTS | OTHERS).items()
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in documents])
    return path


def scores(searcher, query='old houses', k=10):
    return {hit.docid: hit.score for hit in searcher.search(query, k)}


def with_rocchio(folder, **settings):
    return LuceneSparseSearcher(folder, SparseSettings(rocchio=Rocchio(**settings)))


@pytest.mark.jvm
def test_the_expanded_query_by_hand(folder):
    plain = scores(LuceneSparseSearcher(folder))
    assert list(plain) == ['d2', 'd1']
    # 'old', 'hous' and 'town' are in two texts each, once: d2 scores the same for each of them.
    term = plain['d2'] / 2
    # The query's vector is of length 1, and so is that of the best hit, d2.
    of_query = 1 / sqrt(2)
    of_hit = 0.75 / sqrt(3)
    found = scores(with_rocchio(folder, top_fb_docs=1))
    assert list(found) == ['d2', 'd1', 'd5']
    by_hand = 2 * (of_query + of_hit) * term + of_hit * term
    assert found['d2'] == pytest.approx(by_hand, abs=2e-4)
    # d1 lacks 'town'.
    assert found['d1'] == pytest.approx((of_query + of_hit) * plain['d1'], abs=2e-4)
    assert scores(with_rocchio(folder, top_fb_docs=1), k=1) == {'d2': found['d2']}


@pytest.mark.jvm
def test_hits_without_weight_change_nothing(folder):
    plain = scores(LuceneSparseSearcher(folder))
    found = scores(with_rocchio(folder, beta=0))
    expected = {docid: score / sqrt(2) for docid, score in plain.items()}
    assert found == pytest.approx(expected, abs=2e-4)


@pytest.mark.jvm
def test_the_last_hits_take_terms_away(folder):
    away = with_rocchio(folder, top_fb_docs=1, bottom_fb_docs=1, gamma=0.5, use_negative=True)
    with_it = scores(with_rocchio(folder, top_fb_docs=1))
    # d1, the last of two hits, has both words of the query.
    assert scores(away)['d1'] < with_it['d1']


@pytest.mark.jvm
def test_a_searcher_goes_over_to_it_and_back(folder):
    plain = LuceneSparseSearcher(folder)
    expected = scores(plain)
    expanding = plain.with_settings(settings=SparseSettings(rocchio=True))
    assert {'d4', 'd5'} < set(scores(expanding)), 'both hits are read'
    assert scores(plain) == expected


@pytest.mark.jvm
def test_it_has_a_name(folder):
    named = open_sparse(f'bm25+rocchio@{folder}')
    assert named.settings == SparseSettings(rocchio=True)
    assert scores(named) == scores(with_rocchio(folder))
    tuned = open_sparse(f'bm25+rocchio@{folder}', k1=2.0, b=0.0)
    assert scores(tuned) != scores(named)


@pytest.mark.jvm
def test_terms_of_other_letters_are_taken(tmp_path):
    texts = {'a': 'القطط والكلاب', 'b': 'الكلاب تجري', 'c': 'السمك', **OTHERS}
    (tmp_path / 'arabic').mkdir()
    with LuceneWriter(tmp_path / 'arabic', language='ar') as writer:
        writer.add([json.dumps({'id': docid, 'contents': text}) for docid, text in texts.items()])
    arabic = SparseSettings(language='ar', rocchio=Rocchio(top_fb_docs=1))
    assert list(scores(LuceneSparseSearcher(tmp_path / 'arabic', arabic), 'قطط')) == ['a', 'b']


@pytest.mark.jvm
def test_it_needs_vectors_or_text(tmp_path):
    path = tmp_path / 'bare'
    options = ['-input', '', '-collection', 'JsonCollection', '-index', str(path)]
    indexer = java_class('io.anserini.index.SimpleIndexer')(options)
    indexer.addRawDocument('{"id": "1", "contents": "cats sleep"}')
    indexer.close()
    with pytest.raises(MismatchError, match='nor raw JSON, which Rocchio needs'):
        LuceneSparseSearcher(path, SparseSettings(rocchio=True))


@pytest.mark.parametrize(
    'wrong',
    [{'top_fb_terms': 0}, {'bottom_fb_docs': 0}, {'alpha': -1.0}, {'beta': float('nan')}],
)
def test_wrong_settings(wrong):
    with pytest.raises(InputError, match='one term and one document'):
        Rocchio(**wrong)


def test_one_kind_of_feedback():
    with pytest.raises(InputError, match='a query takes one kind of feedback'):
        SparseSettings(rm3=Rm3(), rocchio=True)

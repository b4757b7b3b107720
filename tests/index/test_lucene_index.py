"""Lucene indexes of every variant, built and searched in one virtual machine; scores computed by
hand.
"""

import json
import math

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.names.corpora import open_corpus

PASSAGES = {
    'd1': 'Red apples grow on old trees.',
    'd2': 'Green pears and red pears.',
    'd3': 'Blue skies over the sea, 東京 also.',
}


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / 'corpus.jsonl'
    path.write_text(
        ''.join(
            json.dumps({'id': docid, 'contents': text}) + '\n' for docid, text in PASSAGES.items()
        )
    )
    return open_corpus(path)


def searcher(folder, settings=None):
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    return LuceneSparseSearcher(folder, settings)


def found(folder, query):
    return [candidate.docid for candidate in searcher(folder).search(query)]


@pytest.mark.jvm
def test_plain_index(corpus, tmp_path):
    counts = []
    assert build_lucene_index(corpus, tmp_path / 'i', on_progress=counts.append) == 3
    assert sum(counts) == 3
    index = searcher(tmp_path / 'i')
    assert index.size == 3
    assert index.texts(['d3', 'none', 'd1', 'd3']) == [
        PASSAGES['d3'],
        None,
        PASSAGES['d1'],
        PASSAGES['d3'],
    ]
    assert found(tmp_path / 'i', 'apple') == ['d1'], 'stemmed as Anserini does'
    assert found(tmp_path / 'i', 'the') == []
    assert json.loads((tmp_path / 'i/pyserini_repbert.json').read_text())['passages'] == 3
    # SDM needs the positions, RM3 the document vectors; in so small a collection RM3 finds every
    # new term too common
    from pyserini_repbert.lucene.sparse_settings import Rm3, SparseSettings

    pairs = searcher(tmp_path / 'i', SparseSettings(sdm=True)).search('red pears')
    assert [hit.docid for hit in pairs] == ['d2', 'd1']
    feedback = searcher(tmp_path / 'i', SparseSettings(rm3=Rm3(fb_terms=5, fb_docs=1))).search(
        'pears'
    )
    assert [hit.docid for hit in feedback] == ['d2']


@pytest.mark.jvm
def test_an_index_is_overwritten_when_asked_for(corpus, tmp_path):
    build_lucene_index(corpus, tmp_path / 'i')
    with pytest.raises(InputError, match='exists already: overwrite it, or give another'):
        build_lucene_index(corpus, tmp_path / 'i')
    (tmp_path / 'bad.jsonl').write_text('{"id": "n1", "contents": "New apples."}\nbroken\n')
    with pytest.raises(InputError, match='not JSON'):
        build_lucene_index(open_corpus(tmp_path / 'bad.jsonl'), tmp_path / 'i', overwrite=True)
    assert found(tmp_path / 'i', 'apple') == ['d1'], 'the old index, because the new one failed'
    (tmp_path / 'new.jsonl').write_text('{"id": "n1", "contents": "New apples."}\n')
    build_lucene_index(open_corpus(tmp_path / 'new.jsonl'), tmp_path / 'i', overwrite=True)
    assert found(tmp_path / 'i', 'apple') == ['n1']
    names = ['bad.jsonl', 'corpus.jsonl', 'i', 'new.jsonl']
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_only_a_lucene_index_is_overwritten(corpus, tmp_path):
    (tmp_path / 'letters').mkdir()
    (tmp_path / 'letters' / 'dear').write_text('you')
    with pytest.raises(InputError, match='letters is no Lucene index that was made here'):
        build_lucene_index(corpus, tmp_path / 'letters', overwrite=True)
    assert (tmp_path / 'letters' / 'dear').read_text() == 'you'


@pytest.mark.jvm
def test_bm25_score_by_hand(corpus, tmp_path):
    build_lucene_index(corpus, tmp_path / 'i')
    (hit,) = searcher(tmp_path / 'i').search('sea')
    # Lucene: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), N = 3, n = 1; d3 is blue sky over sea 東京->東,  # noqa: E501
    # 京 also: 7 terms
    lengths = [5, 4, 7]  # d1: red appl grow old tree; d2: green pear red pear
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    tf = 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 7 / (sum(lengths) / 3)))
    assert hit.score == pytest.approx(idf * tf, abs=1e-4)


@pytest.mark.jvm
def test_predicted_queries_are_found_but_not_shown(corpus, tmp_path):
    (tmp_path / 'p.txt').write_text('cider / fruit\nperry / fruit\nheaven / weather\n')
    build_lucene_index(corpus, tmp_path / 'all', 'docTTTTTquery', predictions=tmp_path / 'p.txt')
    build_lucene_index(
        corpus, tmp_path / 'one', 'doc2query', predictions=[tmp_path / 'p.txt'], topk=1
    )
    assert sorted(found(tmp_path / 'all', 'fruit')) == ['d1', 'd2']
    assert found(tmp_path / 'one', 'fruit') == []
    assert found(tmp_path / 'one', 'perry') == ['d2']
    assert searcher(tmp_path / 'all').texts(['d2']) == [PASSAGES['d2']]
    assert (
        json.loads((tmp_path / 'all/pyserini_repbert.json').read_text())['variant']
        == 'docTTTTTquery'
    )


@pytest.mark.jvm
def test_term_weights_are_term_frequencies(corpus, tmp_path):
    (tmp_path / 'w.tsv').write_text('red 0.9\tapples 0.2\nred 0.04\tpears 0.5\nnothing -0.1\n')
    assert build_lucene_index(corpus, tmp_path / 'w', 'deepct', weights=tmp_path / 'w.tsv') == 2, (
        'd3 has no terms left'
    )
    index = searcher(tmp_path / 'w')
    assert (index.settings.k1, index.settings.b) == (10.0, 0.9)
    first, second = index.search('red')
    assert (first.docid, second.docid) == ('d1', 'd2')
    idf = math.log(1 + 0.5 / 2.5)
    mean = ((90 + 20) + (4 + 50)) / 2
    # lengths above 39 are stored by Lucene in one byte, rounded down: 110 -> 104, 54 -> 54
    assert first.score == pytest.approx(idf * 90 / (90 + 10 * (0.1 + 0.9 * 104 / mean)), abs=1e-4)
    assert second.score == pytest.approx(idf * 4 / (4 + 10 * (0.1 + 0.9 * 54 / mean)), abs=1e-4)
    assert index.texts(['d1']) == [PASSAGES['d1']]
    build_lucene_index(corpus, tmp_path / 's', 'deepct', weights=tmp_path / 'w.tsv', sqrt=True)
    assert searcher(tmp_path / 's').settings.k1 == 18.0


@pytest.mark.jvm
def test_nothing_is_left_of_a_build_that_failed(corpus, tmp_path):
    (tmp_path / 'w.tsv').write_text('red 0.9\nbad\nblue 0.1\n')
    with pytest.raises(InputError, match=r'w\.tsv:2'):
        build_lucene_index(corpus, tmp_path / 'out', 'deepct', weights=tmp_path / 'w.tsv')
    assert sorted(path.name for path in tmp_path.iterdir()) == ['corpus.jsonl', 'w.tsv']


@pytest.mark.jvm
def test_skipped_lines_would_shift_the_additions(tmp_path):
    path = tmp_path / 'corpus.jsonl'
    path.write_text('{"id": "a", "contents": "x"}\nbroken\n{"id": "b", "contents": "y"}\n')
    (tmp_path / 'p.txt').write_text('one\ntwo\n')
    with pytest.raises(InputError, match=r'1 lines of corpus .* were skipped'):
        build_lucene_index(
            open_corpus(path, on_error='skip'),
            tmp_path / 'out',
            'doc2query',
            predictions=tmp_path / 'p.txt',
        )
    assert not (tmp_path / 'out').exists()

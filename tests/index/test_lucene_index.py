"""Lucene indexes of every variant, built and searched; scores computed by hand."""

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
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in PASSAGES.items()]
    path.write_text('\n'.join(lines) + '\n')
    return open_corpus(path)


@pytest.fixture
def plain(corpus, tmp_path):
    """The folder of an index without additions."""
    build_lucene_index(corpus, tmp_path / 'i')
    return tmp_path / 'i'


def searcher(folder, settings=None):
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    return LuceneSparseSearcher(folder, settings)


def found_docids(folder, query, settings=None):
    return [candidate.docid for candidate in searcher(folder, settings).search(query)]


def record_of(folder):
    return json.loads((folder / 'pyserini_repbert.json').read_text())


@pytest.mark.jvm
def test_all_passages_are_indexed_and_counted(corpus, tmp_path):
    counts = []
    assert build_lucene_index(corpus, tmp_path / 'i', on_progress=counts.append) == 3
    assert sum(counts) == 3
    assert searcher(tmp_path / 'i').size == 3
    assert record_of(tmp_path / 'i')['passages'] == 3


@pytest.mark.jvm
def test_passages_are_stored(plain):
    texts = searcher(plain).texts(['d3', 'none', 'd1', 'd3'])
    assert texts == [PASSAGES['d3'], None, PASSAGES['d1'], PASSAGES['d3']]


@pytest.mark.jvm
def test_words_are_stemmed_and_stopwords_dropped(plain):
    assert found_docids(plain, 'apple') == ['d1']
    assert found_docids(plain, 'the') == []


@pytest.mark.jvm
def test_positions_are_stored_for_sdm(plain):
    from pyserini_repbert.lucene.sparse_settings import SparseSettings

    assert found_docids(plain, 'red pears', SparseSettings(sdm=True)) == ['d2', 'd1']


@pytest.mark.jvm
def test_document_vectors_are_stored_for_rm3(plain):
    """In so small a collection RM3 finds every new term too common."""
    from pyserini_repbert.lucene.sparse_settings import Rm3, SparseSettings

    feedback = SparseSettings(rm3=Rm3(fb_terms=5, fb_docs=1))
    assert found_docids(plain, 'pears', feedback) == ['d2']


@pytest.fixture
def written(tmp_path):
    """written(content): a corpus of these lines."""

    def write(content):
        (tmp_path / 'new.jsonl').write_text(content)
        return open_corpus(tmp_path / 'new.jsonl')

    return write


NEW = '{"id": "n1", "contents": "New apples."}\n'


@pytest.mark.jvm
def test_an_index_is_not_overwritten_unasked(plain, written):
    with pytest.raises(InputError, match='exists already: overwrite it'):
        build_lucene_index(written(NEW), plain)
    assert found_docids(plain, 'apple') == ['d1']


@pytest.mark.jvm
def test_an_index_is_overwritten_when_asked_for(plain, written):
    build_lucene_index(written(NEW), plain, overwrite=True)
    assert found_docids(plain, 'apple') == ['n1']
    assert sorted(path.name for path in plain.parent.iterdir()) == [
        'corpus.jsonl',
        'i',
        'new.jsonl',
    ]


@pytest.mark.jvm
def test_an_index_stays_if_the_new_one_fails(plain, written):
    with pytest.raises(InputError, match='not JSON'):
        build_lucene_index(written(NEW + 'broken\n'), plain, overwrite=True)
    assert found_docids(plain, 'apple') == ['d1']


def test_only_a_lucene_index_is_overwritten(corpus, tmp_path):
    (tmp_path / 'letters').mkdir()
    (tmp_path / 'letters' / 'dear').write_text('you')
    with pytest.raises(InputError, match='letters is not a Lucene index'):
        build_lucene_index(corpus, tmp_path / 'letters', overwrite=True)
    assert (tmp_path / 'letters' / 'dear').read_text() == 'you'


@pytest.mark.jvm
def test_bm25_score_by_hand(plain):
    """Lucene: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), N = 3, n = 1.

    d1 has 5 terms (red appl grow old tree), d2 has 4 (green pear red pear), d3 has 7 (blue sky
    over sea 東 京 also).
    """
    (hit,) = searcher(plain).search('sea')
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    mean_length = (5 + 4 + 7) / 3
    tf = 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 7 / mean_length))
    assert hit.score == pytest.approx(idf * tf, abs=1e-4)


@pytest.fixture
def predictions(tmp_path):
    path = tmp_path / 'p.txt'
    path.write_text('cider / fruit\nperry / fruit\nheaven / weather\n')
    return path


@pytest.mark.jvm
def test_predicted_queries_are_found_but_not_shown(corpus, predictions, tmp_path):
    folder = tmp_path / 'all'
    build_lucene_index(corpus, folder, 'docTTTTTquery', predictions=predictions)
    assert sorted(found_docids(folder, 'fruit')) == ['d1', 'd2']
    assert searcher(folder).texts(['d2']) == [PASSAGES['d2']]
    assert record_of(folder)['variant'] == 'docTTTTTquery'


@pytest.mark.jvm
def test_the_first_predicted_queries_can_be_chosen(corpus, predictions, tmp_path):
    folder = tmp_path / 'one'
    build_lucene_index(corpus, folder, 'doc2query', predictions=[predictions], topk=1)
    assert found_docids(folder, 'fruit') == []
    assert found_docids(folder, 'perry') == ['d2']


@pytest.fixture
def weights(tmp_path):
    """DeepCT's weights of the three passages; of the third, none is positive."""
    path = tmp_path / 'w.tsv'
    path.write_text('red 0.9\tapples 0.2\nred 0.04\tpears 0.5\nnothing -0.1\n')
    return path


@pytest.mark.jvm
def test_a_passage_without_terms_is_left_out(corpus, weights, tmp_path):
    assert build_lucene_index(corpus, tmp_path / 'w', 'deepct', weights=weights) == 2


@pytest.mark.jvm
def test_term_weights_are_term_frequencies(corpus, weights, tmp_path):
    """Lucene stores lengths above 39 in one byte, rounded down: 110 is 104, 54 is 54."""
    build_lucene_index(corpus, tmp_path / 'w', 'deepct', weights=weights)
    index = searcher(tmp_path / 'w')
    first, second = index.search('red')
    idf = math.log(1 + 0.5 / 2.5)
    mean_length = ((90 + 20) + (4 + 50)) / 2
    first_tf = 90 / (90 + 10 * (0.1 + 0.9 * 104 / mean_length))
    second_tf = 4 / (4 + 10 * (0.1 + 0.9 * 54 / mean_length))
    assert first.docid == 'd1'
    assert first.score == pytest.approx(idf * first_tf, abs=1e-4)
    assert second.docid == 'd2'
    assert second.score == pytest.approx(idf * second_tf, abs=1e-4)
    assert index.texts(['d1']) == [PASSAGES['d1']]


@pytest.mark.jvm
@pytest.mark.parametrize(('sqrt', 'k1', 'b'), [(False, 10.0, 0.9), (True, 18.0, 0.7)])
def test_weighted_terms_are_searched_with_the_authors_constants(
    corpus, weights, tmp_path, sqrt, k1, b
):
    build_lucene_index(corpus, tmp_path / 'w', 'deepct', weights=weights, sqrt=sqrt)
    settings = searcher(tmp_path / 'w').settings
    assert settings.k1 == k1
    assert settings.b == b


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

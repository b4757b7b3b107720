"""A frequent word of a question counts a quarter; without such words, scores are BM25's."""

from contextlib import closing

import pytest

from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.ranking import Query

pytestmark = pytest.mark.jvm
TEXTS = {
    'car': 'The garage repaired the brakes of the car.',
    'mail': 'What I wanted to say: which of my plans do you and I keep, and what do we do?',
    'kita': 'Der Kindergarten ist am Freitag zu.',
    'bees': 'Bees like lavender; the car stays in the garage.',
}


@pytest.fixture
def collection(open_collection):
    with open_collection(sparse='bm25') as opened:
        opened.sync([{'id': docid, 'text': text} for docid, text in TEXTS.items()], 's')
        yield opened


@pytest.fixture
def bm25(collection):
    with closing(LuceneSparseSearcher(collection.generation.lucene_folder)) as searcher:
        yield lambda text: scores_of(searcher, text)


def scores_of(searcher, text):
    ranking = searcher.rank([Query('1', text)], None, 10)['1']
    return dict(zip(ranking.docids, ranking.scores, strict=True))


def test_scores_are_those_of_bm25_and_a_quarter_for_frequent_words(collection, bm25):
    searcher = collection.searcher(rankings=['bm25'])
    assert scores_of(searcher, 'car garage') == bm25('car garage')
    content = bm25('keep car plans')
    frequent = bm25('what do i my')
    expected = {}
    for docid in content.keys() | frequent.keys():
        expected[docid] = content.get(docid, 0) + frequent.get(docid, 0) / 4
    found = scores_of(searcher, 'what car plans do I keep of my')
    # Anserini rounds scores to four decimals.
    assert found == pytest.approx(expected, abs=2e-4)
    # The analyzer is English, and the question is not.
    assert scores_of(searcher, 'Ist am Freitag der Kindergarten zu')['kita'] == pytest.approx(
        bm25('Freitag Kindergarten')['kita'] + bm25('Ist am der zu')['kita'] / 4, abs=2e-4
    )


def test_a_long_text_of_function_words_no_longer_comes_first(collection, bm25):
    question = 'which of my brakes'
    assert next(iter(bm25(question))) == 'mail'
    hits = collection.searcher(rankings=['bm25']).search(question, k=1)
    assert [hit.docid for hit in hits] == ['car']


def test_batches_filters_and_explanations_agree(collection):
    question = 'which plans do I keep for the car'
    searcher = collection.searcher(rankings=['bm25'])
    alone = scores_of(searcher, question)
    both = searcher.rank([Query('1', question), Query('2', 'car')], None, 10)
    assert dict(zip(both['1'].docids, both['1'].scores, strict=True)) == alone
    (words,) = searcher.parts if hasattr(searcher, 'parts') else (searcher,)
    within = words.among(list(alone))
    assert scores_of(within, question) == pytest.approx(alone, abs=1e-5)
    for docid, weights in words.word_weights(question, list(alone)).items():
        assert sum(word.weight for word in weights) == pytest.approx(alone[docid], abs=1e-3)
        assert {word.word for word in weights} <= set(question.split())
    assert words.greatest_score(question) > max(alone.values())

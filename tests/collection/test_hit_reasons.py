"""Why a hit of a collection is there: BM25's words, and the sentence nearest to the question."""

import gc
import weakref

import numpy as np
import pytest

from pyserini_repbert.collection.nearest_sentences import (
    MOST_INPUTS,
    MOST_SENTENCES,
    nearest_sentences,
    sentence_spans,
)
from pyserini_repbert.explain.explaining import hit_reasons
from pyserini_repbert.ranking import Ranking, Reason, ReasonKind, WordWeight

WORDS = ('copper', 'slug', 'board')
TEXT = 'Slugs hide. A band of copper keeps a slug off!\n\nBoards rot.'
DOCUMENTS = [
    {'id': 'a', 'title': 'Slugs', 'text': TEXT},
    {'id': 'b', 'text': 'Lettuce wants shade. A slug eats lettuce.'},
    {'id': 'c', 'text': 'Beans.'},
]


def counts(texts):
    """A vector of a text: how often it has each of WORDS."""
    return np.array([[text.lower().count(word) for word in WORDS] for text in texts], np.float32)


def test_the_sentence_with_the_words_of_the_question_is_nearest():
    query = np.array([2, 1, 0], np.float32)
    (found,) = nearest_sentences(query, [TEXT], counts)
    assert TEXT[found.start : found.end] == 'A band of copper keeps a slug off!'
    assert found.words == (('copper', 2.0), ('slug', 1.0))


def test_each_passage_has_its_own_sentence():
    query = np.array([0, 0, 1], np.float32)
    passages = [TEXT, '', 'board board. slug', 'board']
    found = nearest_sentences(query, passages, counts)
    sentences = [passage[own.start : own.end] for passage, own in zip(passages, found, strict=True)]
    assert sentences == ['Boards rot.', '', 'board board.', 'board']
    # A sentence of one word has nothing to leave out.
    assert [own.words for own in found] == [(('Boards', 1.0),), (), (), ()]
    assert nearest_sentences(query, [], counts) == []


@pytest.mark.parametrize(
    'text', ['Word one. ' * 500, 'word ' * 2000, '? !', '狗在这里。 猫在那里。']
)
def test_what_is_encoded_is_bounded(text):
    encoded = []

    def embed(texts):
        encoded.extend(texts)
        return counts(texts)

    nearest_sentences(np.ones(3, np.float32), [text], embed)
    assert 1 <= len(encoded) <= MOST_INPUTS
    assert max(map(len, encoded)) <= len(text)
    spans = sentence_spans(text)
    assert len(spans) <= MOST_SENTENCES
    assert ' '.join(text[start:end] for start, end in spans).split() == text.split()


def test_words_that_weigh_nothing_are_not_shown():
    told = {'a': (Reason(ReasonKind.WORDS, 'bm25', (WordWeight('the', 0.0004),)),)}
    (lines,) = hit_reasons('the', Ranking(['a'], [1.0]), [], [], first_stage=told)
    assert lines == ['ranks: ']


def test_lines_of_the_terminal():
    told = [
        Reason(
            ReasonKind.SENTENCE, 'dense', (WordWeight('copper', 0.5), WordWeight('a', 0.001)), 'x'
        ),
        Reason(ReasonKind.WORDS, 'bm25', (WordWeight('slugs', 1.25), WordWeight('off', 1.0))),
    ]
    (lines,) = hit_reasons('q', Ranking(['a'], [1.0]), [], [], first_stage={'a': told})
    assert lines[1:] == ['sentence: x', 'without: copper -0.50', 'words: slugs 1.25 + off 1.00']


@pytest.fixture
def mine(open_collection):
    """A collection with Lucene."""
    collection = open_collection(sparse='bm25', passage_tokens=200)
    collection.sync(DOCUMENTS)
    with collection:
        yield collection


@pytest.mark.jvm
def test_words_add_up_to_the_score(mine):
    searcher = mine.searcher(rankings=['bm25'])
    query = 'slugs, lettuce and slugs'
    (hits,) = searcher.batch_search([query], ['q'], k=5).values()
    assert [hit.docid for hit in hits] == ['b', 'a']
    reasons = searcher.reasons(query, ['a', 'b', 'c', 'none'])
    assert set(reasons) == {'a', 'b'}
    for hit in hits:
        (told,) = reasons[hit.docid]
        assert (told.kind, told.ranking) == ('words', 'bm25')
        assert sum(own.weight for own in told.words) == pytest.approx(hit.score, abs=1e-3)
    # The words of the question, not their stems.
    assert {own.word for own in reasons['b'][0].words} == {'slugs', 'lettuce'}
    assert searcher.reasons('the', ['a']) == {}
    searcher.close()


@pytest.mark.jvm
def test_only_rankings_that_ranked_are_told_of(mine):
    for rankings in (['dense'], ['bm25'], ['dense', 'bm25']):
        searcher = mine.searcher(rankings=rankings)
        kinds = {'dense': 'sentence', 'bm25': 'words'}
        expected = [kinds[ranking] for ranking in rankings]
        assert [told.kind for told in searcher.reasons('slug', ['a'])['a']] == expected
        searcher.close()


def test_a_sentence_is_where_it_says(open_collection):
    collection = open_collection(passage_tokens=12)
    text = ' '.join(f'The {word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird'))
    collection.sync([{'id': 'a', 'text': text, 'title': 'pets'}, {'id': 'b', 'text': ''}])
    with collection:
        searcher = collection.searcher()
        reasons = searcher.reasons('fish', ['a', 'b'])
        searcher.close()
        (hit,) = [hit for hit in collection.search('fish') if hit.docid == 'a']
    assert set(reasons) == {'a'}
    (told,) = reasons['a']
    passage = hit.excerpts[0]
    assert passage.start <= told.start < told.end <= passage.end
    assert text[told.start : told.end] == told.sentence
    assert all(own.weight > 0 for own in told.words)


def test_a_searcher_ends_with_its_last_reference(open_collection):
    collection = open_collection()
    collection.sync([{'id': 'a', 'text': 'The cat ran on the red mat.'}])
    with collection:
        searcher = collection.searcher()
        (dense,) = searcher.leaves()
        assert dense.reasons('cat', ['a'])
        reference = weakref.ref(dense)
        gc.disable()
        try:
            searcher.close()
            del searcher, dense
            assert reference() is None
        finally:
            gc.enable()

"""A hybrid question of a collection: its best documents are those of its whole rankings."""

import math
import random
from contextlib import closing

import numpy as np
import pytest

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import threshold
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import NO_HITS, Background, Query, by_score

WORDS = 'cat dog ran mat red moon sea zebra sky'.split()
MAX = FusionSettings('interpolation', weights=(0.6, 0.4), normalize='max')
BACKGROUND = MAX.changed(normalize='background')
# Of a background, which is computed by the mean of vectors.
ROUNDING = 1e-6
pytestmark = pytest.mark.jvm


def text(drawn, longest):
    return ' '.join(drawn.choices(WORDS, k=drawn.randint(0, longest)))


@pytest.fixture(autouse=True)
def few_hits_at_first(monkeypatch):
    """Searches begin k deep, and end at whole rankings."""
    monkeypatch.setattr(threshold, 'first_depth', lambda k: k)
    monkeypatch.setattr(threshold, '_DEEPER', 100)


@pytest.fixture
def lived_collection(open_collection):
    """Documents of one passage and of many, some of them alike, some deleted."""
    drawn = random.Random(1)
    collection = open_collection(sparse='bm25')
    documents = [
        {'id': f'd{n}', 'text': text(drawn, 60 if n % 9 == 0 else 8), 'even': n % 2 == 0}
        for n in range(90)
    ]
    documents += [{'id': f'same{n}', 'text': 'red cat', 'even': n % 2 == 0} for n in range(9)]
    collection.sync(documents)
    collection.delete(['d1', 'd2', 'same3'])
    yield collection
    collection.close()


def fused_by_hand(searcher, topic, docids, k):
    """The k best of documents, by what each ranking gives each of them alone."""
    totals = np.zeros(len(docids))
    backgrounds = [Background(0.0), Background(0.0)]
    if searcher.settings.normalize == 'background':
        dense, words = searcher.parts
        backgrounds = [background_by_hand(dense, topic), background_of_words(words, topic)]
    parts = zip(searcher.parts, searcher.settings.weights, backgrounds, strict=True)
    for part, weight, background in parts:
        scores = [part.document_scores(topic, [docid], NO_HITS)[0] for docid in docids]
        above = np.array([0 if score is None else score - background.score for score in scores])
        if max(above) > 0:
            totals += weight * np.maximum(above, 0) / max(max(above), background.chance)
    return by_score(docids, totals.tolist())[:k]


def background_by_hand(dense, topic):
    """Of a question's products with all live passages, which are fewer than 256."""
    vectors = dense.vectors
    live = vectors.gather(np.flatnonzero(vectors.live))
    assert 0 < len(live) < 256
    products = live @ dense.vector_of(topic.text)
    chance = 1.25 * math.sqrt(2 * math.log(dense.n_searched)) * float(np.std(products))
    return Background(float(np.mean(products)), chance)


def background_of_words(words, topic):
    """Each word adds its weight over 1.9, with the probability that a document has it."""
    index = getattr(words, '_unfiltered', words)
    weights = np.array([index.greatest_score(word) for word in topic.text.split()])
    scores = weights / 1.9
    shares = np.exp(-weights)
    deviation = math.sqrt(float(np.sum(shares * (1 - shares) * scores**2)))
    return Background(0.0, min(float(shares @ scores) + 5 * deviation, float(np.sum(scores))))


@pytest.mark.parametrize('aggregation', ['max', 'first', 'mean', 'top3'])
@pytest.mark.parametrize('wanted', [None, 'even:true', 'docid:same*'])
@pytest.mark.parametrize('settings', [MAX, BACKGROUND])
def test_equals_the_fusion_of_whole_rankings(lived_collection, aggregation, wanted, settings):
    with closing(lived_collection.searcher(aggregate=aggregation)) as whole:
        searcher = whole.with_settings(settings=settings).within(DocumentFilter(wanted))
        mask = searcher.filter.mask(searcher.generation)
        docids = searcher.generation.docids(np.flatnonzero(mask))
        for number, question in enumerate(['red cat', 'moon', 'zebra sky sea', 'dog dog', 'none']):
            topic = Query(str(number), question)
            expected = fused_by_hand(searcher, topic, docids, 5)
            ranked = searcher.rank([topic], None, 5)[topic.qid]
            assert ranked.docids == expected.docids
            assert ranked.scores == pytest.approx(expected.scores, abs=ROUNDING)


def test_python_names_the_rankings_of_a_search(lived_collection):
    """Only a searcher of its own took them."""
    for rankings in (['bm25'], ['dense'], ['bm25', 'dense']):
        hits = lived_collection.search('red cat', 5, filter='even:true', rankings=rankings)
        with closing(lived_collection.searcher(rankings=rankings)) as whole:
            expected = whole.within(DocumentFilter('even:true')).search('red cat', 5)
        assert hits == expected
    with pytest.raises(InputError, match='ranking'):
        lived_collection.search('red cat', rankings=['words'])


def test_a_collection_fuses_from_the_background_of_its_generation(open_collection):
    """Passages that were added count, and those that were deleted do not."""
    collection = open_collection(sparse='bm25')
    topic = Query('q', 'red cat')
    backgrounds = []
    with closing(collection):
        collection.sync([{'id': f'd{n}', 'text': word} for n, word in enumerate(WORDS)])
        for change in (None, ['d0', 'd4'], [{'id': 'new', 'text': 'red red cat'}]):
            if change and change[0] == 'd0':
                collection.delete(change)
            elif change:
                collection.add(change)
            with closing(collection.searcher()) as searcher:
                assert str(searcher.settings.normalize) == 'background'
                (dense, words) = searcher.parts
                expected = background_by_hand(dense, topic)
                ranking = dense.rank([topic], None, 3)['q']
                assert ranking.background.score == pytest.approx(expected.score, abs=1e-6)
                assert ranking.background.chance == pytest.approx(expected.chance, abs=1e-6)
                assert ranking[:1].background == ranking.background
                # Within a filter, the background stays that of all documents: the best one of few
                # is better than any by less.
                within = dense.within(DocumentFilter('docid:d5')).rank([topic], None, 3)['q']
                assert within.background.score == ranking.background.score
                assert within.background.chance < ranking.background.chance
                assert words.rank([topic], None, 3)['q'].background == background_of_words(
                    words, topic
                )
                backgrounds.append(ranking.background)
    assert len(set(backgrounds)) == 3


def test_scores_of_single_documents_are_those_of_the_ranking(lived_collection):
    with closing(lived_collection.searcher()) as searcher:
        topic = Query('q', 'red cat sea')
        for part in searcher.parts:
            whole = part.rank([topic], None, None)['q']
            scores = part.document_scores(topic, whole.docids, NO_HITS)
            assert scores == part.document_scores(topic, whole.docids, whole)
            assert scores == part.document_scores(topic, whole.docids, whole[:4])
            # Anserini takes 1e-6 off each score that equals the one before.
            assert scores == pytest.approx(whole.scores, abs=5e-5)
            assert scores[0] == pytest.approx(whole.scores[0], abs=1e-7)


def test_documents_as_questions_are_fused_alike(lived_collection):
    with closing(lived_collection.searcher()) as whole:
        searcher = whole.with_settings(settings=MAX).by_documents()
        docids = searcher.generation.docids(np.flatnonzero(searcher.generation.live_documents))
        topic = Query('q', 'd9')
        others = [docid for docid in docids if docid != 'd9']
        expected = fused_by_hand(searcher, topic, others, 5)
        ranked = searcher.rank([topic], None, 5)['q']
        assert ranked.docids == expected.docids
        assert ranked.scores == pytest.approx(expected.scores, abs=1e-12)


@pytest.mark.parametrize(('n_others', 'depth'), [(55, 5), (85, 91), (85, 5)])
def test_scores_within_a_filter_are_those_of_many_equal_documents(open_collection, n_others, depth):
    """Anserini takes 1e-6 off for each equal score before: 5e-5 after fifty."""
    collection = open_collection(sparse='bm25')
    documents = [{'id': f'a{n:03}', 'text': 'red cat', 'kind': 'other'} for n in range(n_others)]
    documents += [{'id': f'b{n:03}', 'text': 'red cat', 'kind': 'wanted'} for n in range(90)]
    documents += [{'id': 'c1', 'text': 'red cat mat', 'kind': 'wanted'}]
    collection.sync(documents)
    topic = Query('q', 'red')
    with closing(collection), closing(collection.searcher(rankings=['bm25'])) as searcher:
        (whole,) = searcher.leaves()
        (part,) = searcher.within(DocumentFilter('kind:wanted')).leaves()
        ranking = part.rank([topic], None, depth)['q']
        assert len(ranking) == depth and ranking.docids[0] == 'b000'
        alone = [whole.document_scores(topic, [docid], NO_HITS)[0] for docid in ranking.docids]
        assert part.document_scores(topic, ranking.docids, ranking) == alone
        # As if there were no other documents.
        among = whole.among(ranking.docids).rank([topic], None, depth)['q']
        assert ranking.docids == among.docids
        assert ranking.scores == pytest.approx(among.scores, abs=1e-9)

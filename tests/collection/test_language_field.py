"""Documents have the field `language`. Words do not judge those in another than the question's."""

from contextlib import closing

import numpy as np
import pytest

from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.index.store import CollectionStore
from pyserini_repbert.lucene.guessing import are_different, question_language
from pyserini_repbert.ranking import NO_HITS, Query, by_score

SLUGS = (
    'Slugs eat the young plants first, and hide under boards by day. A band of copper keeps every '
    'slug away from the lettuce, if it is broad enough for them.'
)
SCHNECKEN = (
    'Schnecken fressen zuerst die jungen Pflanzen und verstecken sich am Tag unter den Brettern. '
    'Ein Kupferband hält jede Schnecke vom Salat fern, wenn es breit genug ist.'
)
DOCUMENTS = [
    {'id': 'slugs', 'text': SLUGS},
    {'id': 'schnecken', 'text': SCHNECKEN},
    {'id': 'titled', 'title': 'Die Schnecken und der Salat', 'text': SCHNECKEN},
    {'id': 'short', 'text': 'Slugs hide.'},
    {'id': 'letter', 'text': SCHNECKEN, 'language': 'en-GB'},
    {'id': 'named', 'text': SCHNECKEN, 'language': 'German'},
]


@pytest.fixture
def garden(open_collection):
    with closing(open_collection(sparse='bm25')) as collection:
        collection.sync(DOCUMENTS)
        yield collection


def filtered(collection, text):
    generation = collection.generation
    return sorted(generation.docids(np.flatnonzero(DocumentFilter(text).mask(generation))))


def test_filters_find_documents_by_their_language(garden):
    assert filtered(garden, 'language:de') == ['schnecken', 'titled']
    assert filtered(garden, 'language:en') == ['slugs']
    assert filtered(garden, 'language:en*') == ['letter', 'slugs']
    assert filtered(garden, 'NOT language:*') == ['short']
    with closing(FieldCounter(garden.generation)) as counter:
        values = counter.counts()['language'].values
    assert {(own.value, own.documents) for own in values} == {
        ('de', 2),
        ('en', 1),
        ('en-gb', 1),
        ('german', 1),
    }
    folder = garden.generation.folder
    assert check_collection(folder).startswith(f'{folder}: intact')


def test_a_language_is_shown_where_documents_have_several(garden, open_collection):
    store = CollectionStore(garden.generation)
    assert store.fields(['slugs', 'titled', 'short', 'letter'], ['*']) == [
        {'language': 'en'},
        {'language': 'de'},
        {},
        {'language': 'en-GB'},
    ]
    # A document as it was given has only its own fields.
    (titled,) = garden.generation.documents(['titled'])
    assert titled.fields == {}
    with closing(open_collection('other', sparse='bm25')) as english:
        english.sync(DOCUMENTS[:1])
        assert CollectionStore(english.generation).fields(['slugs'], ['*']) == [{}]


def test_a_changed_text_has_its_own_language(garden):
    garden.sync([{'id': 'slugs', 'text': SCHNECKEN}, *DOCUMENTS[1:]])
    assert filtered(garden, 'language:en') == []
    assert 'slugs' in filtered(garden, 'language:de')
    garden.delete(['slugs'])
    assert 'slugs' not in filtered(garden, 'language:de')


@pytest.mark.parametrize(
    ('question', 'language'),
    [
        ('what keeps the slugs away', 'en'),
        ('was hält die Schnecken fern, und wie', 'de'),
        ('что делать с водой и землёй', 'ru'),
        ('ما هي مدة بقاء الماء في التربة', 'ar'),
        ('ナメクジはどこに隠れますか', 'ja'),
        ('copper', None),
        ('die 1845 slugs', None),
        ('', None),
    ],
)
def test_the_language_of_a_question(question, language):
    assert question_language(question) == language


def test_codes_of_languages():
    assert are_different('en', 'de')
    assert not are_different('en-GB', 'en')
    assert not are_different('en', 'german')
    assert are_different('zh-TW', 'ja')


def fused_by_hand(searcher, topic, docids, k):
    """The k best of documents, where those in German have their share of vectors for words, too."""
    dense, words = searcher.parts
    shares = []
    for part in (dense, words):
        background = part.rank([topic], None, None)['q'].background
        scores = [part.document_scores(topic, [docid], NO_HITS)[0] for docid in docids]
        above = np.array([0 if score is None else score - background.score for score in scores])
        shares.append(np.maximum(above, 0) / max(max(above), background.chance))
    is_german = np.array([docid in ('schnecken', 'titled') for docid in docids])
    by_words = np.where(is_german, np.maximum(*shares), shares[1])
    totals = 0.6 * shares[0] + 0.4 * by_words
    return by_score(docids, totals.tolist())[:k]


@pytest.mark.jvm
@pytest.mark.parametrize('wanted', [None, 'NOT docid:titled'])
@pytest.mark.parametrize('k', [1, 3, None])
def test_words_do_not_judge_documents_in_another_language(garden, wanted, k):
    topic = Query('q', 'the slugs under the Salat')
    with closing(garden.searcher()) as whole:
        searcher = whole.within(DocumentFilter(wanted))
        docids = filtered(garden, wanted) if wanted else [own['id'] for own in DOCUMENTS]
        ranked = searcher.rank([topic], None, k)['q']
        expected = fused_by_hand(searcher, topic, docids, k)
        assert ranked.docids == expected.docids[: len(ranked)]
        assert ranked.scores == pytest.approx(expected.scores[: len(ranked)], abs=1e-6)

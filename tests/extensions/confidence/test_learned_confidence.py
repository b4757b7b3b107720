"""A collection learns the probabilities of its hits, on questions held out."""

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from folders import N_QUESTIONS

from pyserini_repbert.adapt.judged_topics import FOLDS
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.noted_rankings import KNOWN_HITS
from pyserini_repbert.collection.search_description import SearchedRankings
from pyserini_repbert.evaluate.measures import counts_unjudged
from pyserini_repbert.extensions.confidence.features import HitFeatures, question_features
from pyserini_repbert.extensions.confidence.learned import ConfidenceLearner
from pyserini_repbert.extensions.confidence.learning import (
    ask_questions,
    features_elsewhere,
    judged_topics,
    learn_confidence,
    search_topics,
)
from pyserini_repbert.extensions.confidence.models import HIT_FEATURES, TOP
from pyserini_repbert.fusion.threshold import first_depth
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank.base import Reranker


@pytest.fixture
def searcher(mine):
    """The search of a collection without Lucene: two documents for each question."""
    with Collection.open(mine) as collection:
        opened = collection.searcher()
        yield opened
        opened.close()


def test_features_are_the_products_and_their_place_among_others(searcher):
    hits = searcher.search('w3 mat', 4)
    ranking = Ranking.of(hits)
    rows = HitFeatures(searcher.dense, searcher.words).of_hits(
        'w3 mat', ranking.docids, {'dense': ranking}
    )
    scores = np.array(ranking.scores)
    assert np.allclose(rows[:, 0], scores, atol=1e-5)
    # All passages are the sample.
    products = np.array([hit.score for hit in searcher.search('w3 mat', 2 * N_QUESTIONS)])
    assert np.allclose(rows[:, 1], (scores - products.mean()) / products.std(), atol=1e-3)
    assert not rows[:, 2].any()
    assert np.allclose(rows[:, 3], 1 / np.log2([2, 3, 4, 5]))
    assert np.allclose(rows[:, 4], scores - scores.mean(), atol=1e-5)
    question = question_features(rows)
    assert question[0] == rows[0, 0]
    assert question[-1] == pytest.approx(scores[0] - scores[1], abs=1e-5)


def test_only_the_first_hits_of_a_ranking_are_known(searcher):
    hits = searcher.search('w3 mat', 4)
    docids = [hit.docid for hit in hits]
    features = HitFeatures(searcher.dense, searcher.words)
    others = [f'other{number}' for number in range(KNOWN_HITS - 2)]
    # The third and the fourth document are below the first hits.
    deep = Ranking([*docids[:2], *others, *docids[2:]], range(KNOWN_HITS + 2, 0, -1))
    rows = features.of_hits('w3 mat', docids, {'bm25': deep})
    as_deep_as_searched = features.of_hits('w3 mat', docids, {'bm25': deep[:KNOWN_HITS]})
    assert np.array_equal(rows, as_deep_as_searched)
    assert np.allclose(rows[:, 3], [1 / np.log2(2), 1 / np.log2(3), 0, 0])
    # Nothing is searched deeper for them.
    assert first_depth(TOP) >= KNOWN_HITS


class Knowing(Reranker, recorded_as='Knowing'):
    """Knows the relevant documents of each question; it reads the best five hits."""

    reads = 5
    needs_text = False

    def __init__(self, relevant):
        self.name = 'knowing'
        self.relevant = relevant

    def score_lists(self, queries, lists, on_progress=int):
        scores = []
        for query, hits in zip(queries, lists, strict=True):
            known = [docid in self.relevant[query] for docid in hits.docids]
            scores.append(np.where(known, 2.0, -2.0))
        return scores


def test_a_reranker_gives_a_feature(searcher):
    docids = [hit.docid for hit in searcher.search('w3 mat', 10)]
    topic = Query('1', 'w3 mat')
    qrels = {'1': {docids[4]: 1}}
    # One search serves models with and without the reranker.
    searched = search_topics(searcher, [topic])
    (plain,) = ask_questions(searched, qrels)
    (asked,) = ask_questions(searched, qrels, [Knowing({topic.text: {docids[4]}})])
    # The reranker puts the answer first; hits that it does not read have the least of the others.
    assert plain.relevant.index(True) == 4
    assert asked.relevant.index(True) == 0
    assert asked.hits.shape == (10, len(HIT_FEATURES) + 1)
    assert np.allclose(asked.hits[:, -1], [2.0] + [-2.0] * 9)
    assert asked.question[-1] == pytest.approx(2.0)
    assert asked.question[4] == pytest.approx(plain.question[4])
    assert asked.removed[-1] == pytest.approx(-2.0)
    assert np.allclose(asked.removed[:-1], plain.removed)


def test_a_reranker_that_knows_makes_confidence_sure(searcher):
    topics = [Query(str(number), f'w{number} mat') for number in range(N_QUESTIONS)]
    rng = np.random.default_rng(0)
    qrels = {}
    relevant = {}
    for topic in topics:
        docids = [hit.docid for hit in searcher.search(topic.text, 5)]
        qrels[topic.qid] = {docids[rng.integers(5)]: 1}
        relevant[topic.text] = set(qrels[topic.qid])
    learned = learn_confidence(
        ask_questions(search_topics(searcher, topics), qrels, [Knowing(relevant)])
    )
    # Without it, answers at random places are told by nothing.
    assert learned.hits.auc > 0.99
    assert learned.questions.auc > 0.99
    assert learned.model('sha', {}, ['knows@5']).stages == ('knows@5',)


def test_no_hit_has_no_features(searcher):
    rows = HitFeatures(searcher.dense, searcher.words).of_hits('w3', [], {})
    assert rows.shape[0] == 0
    assert not question_features(rows).any()


def test_answers_are_taken_out_for_the_hard_case(searcher):
    topics = [Query('1', 'w3 mat'), Query('2', 'nobody judged')]
    best, second = (hit.docid for hit in searcher.search('w3 mat', 2))
    searched = search_topics(searcher, judged_topics(topics, {'1': {best: 1}}))
    (asked,) = ask_questions(searched, {'1': {best: 1}})
    assert asked.is_answered
    assert asked.relevant == (True, *[False] * 9)
    rows = HitFeatures(searcher.dense, searcher.words).of_hits('w3 mat', [second], {})
    assert asked.removed[0] == pytest.approx(rows[0, 0], abs=1e-5)
    # With a judgment of an irrelevant one, the unjudged are not known.
    (asked,) = ask_questions(searched, {'1': {best: 1, second: 0}})
    assert asked.relevant == (True, False)


def test_whether_the_unjudged_count():
    assert counts_unjudged({'1': {'a': 2}})
    assert not counts_unjudged({'1': {'a': 2}, '2': {'b': 0}})


def test_questions_are_judged_by_models_of_other_folds(searcher):
    topics = [Query(str(number), f'w{number} mat') for number in range(N_QUESTIONS)]
    rng = np.random.default_rng(0)
    qrels = {}
    for topic in topics:
        docids = [hit.docid for hit in searcher.search(topic.text, 10)]
        qrels[topic.qid] = {docids[rng.integers(10)]: 1}
    learned = learn_confidence(ask_questions(search_topics(searcher, topics), qrels))
    assert learned.hits.n == 10 * N_QUESTIONS
    assert learned.questions.n == 2 * N_QUESTIONS
    # Answers at random places are told by nothing: who knows the outcome would be at 1.
    assert learned.hits.auc < 0.7
    assert learned.hits.ece < 0.1
    assert learned.elsewhere_auc is None
    model = learned.model('sha', {})
    assert model.source == 'learned'
    assert model.questions_test.auc == learned.questions.auc
    # One true hit of ten in each question: as many independent ones as questions.
    chance = 0.5 + 1.959964 * np.sqrt((2 * N_QUESTIONS + 1) / (12 * N_QUESTIONS**2))
    assert model.hits_test.chance == pytest.approx(chance)
    assert 'P(relevant)' in model.why_not_shown()


def test_questions_of_another_collection_are_the_easy_case(searcher):
    topics = [Query(str(number), f'w{number} mat') for number in range(N_QUESTIONS)]
    qrels = {}
    for topic in topics:
        (best,) = searcher.search(topic.text, 1)
        qrels[topic.qid] = {best.docid: 1}
    asked = ask_questions(search_topics(searcher, topics), qrels)
    # Questions that are answered as those here are, and others that are not at all.
    same = np.stack([question.question for question in asked])
    assert learn_confidence(asked, elsewhere=same).elsewhere_auc == pytest.approx(0.5, abs=0.15)
    removed = np.stack([question.removed for question in asked])
    learned = learn_confidence(asked, elsewhere=removed)
    assert learned.elsewhere_auc == pytest.approx(learned.questions.auc, abs=0.15)
    strange = [Query('1', 'w3 mat'), Query('2', 'the moon')]
    others = features_elsewhere(search_topics(searcher, strange))
    assert np.allclose(others[0], asked[3].question)
    assert len(others) == 2


def test_each_question_is_searched_for_with_a_map_that_it_did_not_teach(mine):
    """Every fold has a map of its own; the models are learned of all questions."""
    texts = tuple(f'mat w{number}' for number in range(N_QUESTIONS))
    judgments_of(mine).add([Judgment(f'mat w{i}', f'wanted{i}', 2) for i in range(N_QUESTIONS)])
    with Collection.open(mine) as collection, closing(collection.searcher()) as plain:
        size = plain.dense.dimension
        maps = tuple(np.eye(size, dtype=np.float32) * fold for fold in range(1, FOLDS + 1))
        learnt = SimpleNamespace(
            fold_maps=maps, fold_of=lambda text: texts.index(text) % FOLDS, texts=texts
        )
        learner = ConfidenceLearner(learnt, judgments_of(mine), seed=0)
        mapped = plain.with_query_map(np.eye(size, dtype=np.float32))
        questions = learner.search(mapped)
        for fold, part in enumerate(questions.own):
            assert part.searcher.dense.query_map is maps[fold]
            own = [topic.text for topic in part.topics]
            assert own == [text for text in texts if texts.index(text) % FOLDS == fold]
        confidence = learner.learn(questions, {})
        assert confidence.model.hits.n_questions == N_QUESTIONS
        assert confidence.model.search == SearchedRankings.of(mapped).description()
        (unmapped,) = learner.search(plain).own
        assert unmapped.searcher is plain

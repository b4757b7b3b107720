"""What is learned from judgments: the query map, the weights of fusion, a reranker's share."""

import random
import subprocess
import sys

import numpy as np
import pytest
from folders import HANGS
from judgments import (
    BackwardsReranker,
    FixedRanker,
    Judged,
    UndecidedReranker,
    UnmovedReranker,
    turned_topics,
)

from pyserini_repbert.adapt.judged_topics import N_MAPS
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.evaluate.studies.fusion import untuned_settings
from pyserini_repbert.ranking import Query, Ranking, normal_form


def test_a_map_is_learned_that_helps_topics_held_out(searcher):
    judged = turned_topics(searcher, 60)
    learnt = adapt(searcher, [], judged.topics, judged.qrels)
    before = learnt.untuned.values[searcher.name].mean()
    assert learnt.steps['with the query map'].mean() > 4 * before
    assert learnt.held_out.tolist() == learnt.steps['with the query map'].tolist()
    assert np.array_equal(learnt.query_map, learnt.query_map.T)
    assert learnt.weights == (1.0,)
    assert learnt.n_topics == 60


MAP_OF_TWO_TOPICS = """
import sys
import torch
from pyserini_repbert.adapt.query_map import TrainingVectors, learn_query_map

learned = learn_query_map(
    TrainingVectors(
        queries=torch.eye(2),
        random=torch.eye(2),
        is_relevant=torch.eye(2, dtype=torch.bool),
        hard=torch.eye(2).flip(0)[:, None],
        relevant=torch.eye(2),
        topic_of=torch.arange(2),
        scale=1.0,
    ),
    positions=[0, 1],
)
print(learned[0, 1] < 0, 'torch._dynamo' in sys.modules)
"""


def test_a_map_is_learned_without_the_compiler():
    """To import it takes two seconds; another test of this process may have done that."""
    printed = subprocess.run(
        [sys.executable, '-c', MAP_OF_TWO_TOPICS],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=True,
    ).stdout
    assert printed.split() == ['True', 'False']


def test_progress_counts_each_map(searcher):
    """One map without a fold, one for each of 5 folds and one for each of 10 pairs of them."""
    judged = turned_topics(searcher, 20)
    steps = []
    adapt(searcher, [], judged.topics, judged.qrels, on_progress=steps.append)
    assert steps == [1] * N_MAPS == [1] * 16


def test_a_topic_does_not_teach_its_own_estimate(searcher):
    """The sparse ranking is right for one topic alone: held out, that topic gets the weights of
    the others.
    """
    judged = turned_topics(searcher, 20)
    wrong = Ranking([f'd{number}' for number in range(200, 210)], range(10, 0, -1))
    rankings = {topic.qid: wrong for topic in judged.topics}
    rankings['7'] = Ranking(['d7', 'd200'], [2.0, 1.0])
    learnt = adapt(searcher, [FixedRanker(rankings)], judged.topics, judged.qrels)
    assert learnt.weights[0] > 0.8
    assert learnt.untuned.values['fixed'].tolist() == [0.0] * 7 + [1.0] + [0.0] * 12


def test_the_share_of_a_reranker_is_learnt(searcher):
    """The sparse ranking is right, and the reranker turns it round."""
    judged = turned_topics(searcher, 20)
    right = {topic.qid: Ranking([f'd{topic.qid}', 'd200'], [2.0, 1.0]) for topic in judged.topics}
    learnt = adapt(
        searcher,
        [FixedRanker(right)],
        judged.topics,
        judged.qrels,
        reranker=BackwardsReranker().with_settings(reads=10),
    )
    assert learnt.rerank_weight < 0.5
    assert learnt.weights[1] > 0.5
    assert list(learnt.steps) == ['with the query map', 'and fused', 'and reranked']
    assert learnt.held_out.mean() == 1.0
    assert learnt.untuned.now == 'interleave tiny+fixed, backwards@10'
    assert learnt.before.mean() < 1.0
    # Of equal ways, one that learned nothing wins.
    assert (learnt.winner, learnt.estimate().is_convincing) == ('fixed', True)


def test_a_share_of_the_score_is_left_to_the_run_before():
    """a 1 0, b .5 .5, c 0 1 with a quarter of the second; d is not read."""
    run = {'1': Ranking(['a', 'b', 'c', 'd'], [9.0, 8.0, 7.0, 1.0])}
    reranker = BackwardsReranker().with_settings(reads=3, score_share=0.25)
    assert reranker.rank([Query('1', 'x')], run)['1'] == Ranking(
        ['a', 'b', 'c', 'd'], [0.75, 0.5, 0.25, -0.75]
    )


def test_the_share_is_part_of_a_rerankers_identity():
    whole = BackwardsReranker().with_settings(reads=3)
    assert whole.with_settings(score_share=0.25).identity() != whole.identity()


def random_ranking(topic, draw):
    """39 passages without the topic's own, which is put at a random rank."""
    docids = [f'd{number}' for number in draw.sample(range(100, 300), 39)]
    docids.insert(draw.randrange(40), f'd{topic.qid}')
    return Ranking(docids, range(40, 0, -1))


@pytest.mark.parametrize(
    'reranker', [UnmovedReranker(), UndecidedReranker()], ids=['unmoved', 'undecided']
)
@pytest.mark.parametrize('reads', [5, 50])
def test_a_reranker_that_changes_nothing_gains_nothing(searcher, reranker, reads):
    draw = random.Random(1)
    judged = turned_topics(searcher, 40)
    rankings = {topic.qid: random_ranking(topic, draw) for topic in judged.topics}
    learnt = adapt(
        searcher,
        [FixedRanker(rankings)],
        judged.topics,
        judged.qrels,
        reranker=reranker.with_settings(reads=reads),
    )
    assert learnt.steps['and reranked'].tolist() == learnt.steps['and fused'].tolist()
    means = {name: values.mean() for name, values in learnt.untuned.values.items()}
    usual = 'interleave tiny+fixed'
    assert next(iter(means)) == learnt.untuned.now == f'{usual}, {reranker.label}@{reads}'
    assert means[learnt.untuned.now] == means[f'{learnt.untuned.now}:weight=0.5'] == means[usual]


def topics_in_four_spellings(searcher):
    """25 texts, each four times in other spellings, each text with one random passage."""
    draw = np.random.default_rng(3)
    texts = [f'topic {number}' for number in range(25)]
    vectors = dict(zip(texts, draw.normal(size=(25, searcher.dimension)), strict=True))
    searcher.encode = lambda queries: np.stack(
        [vectors[normal_form(query)] for query in queries]
    ).astype(np.float32)
    topics = []
    qrels = {}
    for text in texts:
        passage = f'd{draw.integers(300)}'
        for spelling in (text, text.upper(), text.replace(' ', '\t'), f' {text}  '):
            topic = Query(str(len(topics)), spelling)
            topics.append(topic)
            qrels[topic.qid] = {passage: 1}
    return Judged(topics, qrels)


def test_topics_with_one_text_are_one_question(searcher):
    """Held out together, with one value."""
    judged = topics_in_four_spellings(searcher)
    estimate = adapt(searcher, [], judged.topics, judged.qrels).estimate()
    assert estimate.topics == 100
    assert estimate.texts == 25
    assert not estimate.is_convincing
    assert estimate.gain < 0.05


def test_the_search_as_it_is_now_comes_first_then_all_that_need_no_judgments(searcher):
    judged = turned_topics(searcher, 20)
    wrong = Ranking(['d200', 'd201'], [2.0, 1.0])
    sparse = FixedRanker({topic.qid: wrong for topic in judged.topics})
    learnt = adapt(searcher, [sparse], judged.topics, judged.qrels)
    assert list(learnt.untuned.values) == [
        'interleave tiny+fixed',
        'tiny',
        'fixed',
        'interleave fixed+tiny',
        'rrf tiny+fixed k=60',
        'interpolation tiny+fixed alpha=0.5',
        'interpolation tiny+fixed alpha=0.5 minmax',
        'interpolation tiny+fixed alpha=0.5 zscore',
        'interpolation tiny+fixed alpha=0.7',
        'interpolation tiny+fixed alpha=0.7 minmax',
        'interpolation tiny+fixed alpha=0.7 zscore',
    ]
    assert learnt.untuned.now == 'interleave tiny+fixed'
    assert learnt.estimate().before == learnt.untuned.values['interleave tiny+fixed'].mean()


def test_three_rankings_are_weighed_by_default_shares():
    chosen = untuned_settings(['dense', 'bm25', 'ql'])
    assert [str(setting) for setting in chosen[:4]] == [
        'interleave dense+bm25+ql',
        'interleave bm25+ql+dense',
        'rrf dense+bm25+ql k=60',
        'interpolation dense+bm25+ql weights=0.333333 0.333333 0.333333',
    ]
    assert str(chosen[-2]) == 'interpolation dense+bm25+ql weights=0.7 0.15 0.15 minmax'

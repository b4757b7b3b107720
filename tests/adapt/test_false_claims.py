"""Where there is nothing to learn, `adapt` claims no gain."""

import random

import numpy as np
import pytest
from judgments import FixedRanker, UnmovedReranker

from pyserini_repbert.adapt.adaptation import best_name
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.ranking import Query, Ranking

N_TEXTS = 25


def random_judgments(draw):
    """One random passage for each text."""
    return [f'd{draw.randrange(300)}' for _ in range(N_TEXTS)]


def shuffled_judgments(draw):
    """The passage of another text, but by chance, for each text."""
    return [f'd{number}' for number in draw.sample(range(N_TEXTS), N_TEXTS)]


def right_judgments(draw):
    """Its own passage for each text: both rankings know something, and maps and weights nothing
    more.
    """
    return [f'd{number}' for number in range(N_TEXTS)]


def ranking_with(number, draw):
    """39 random passages and the text's own, which is among the best."""
    docids = draw.sample([f'd{row}' for row in range(300) if row != number], 39)
    docids.insert(min(int(draw.expovariate(0.2)), 39), f'd{number}')
    return Ranking(docids, range(40, 0, -1))


def learn_by_chance(searcher, seed, judge, n_spellings):
    """What `adapt` learns from texts whose vectors are those of their passages, with noise."""
    passages = searcher.index.vectors(np.arange(300))
    noise = np.random.default_rng(seed).normal(size=(N_TEXTS, searcher.dimension))
    vectors = (passages[:N_TEXTS] + passages.std() * noise).astype(np.float32)
    searcher.encode = lambda queries: np.stack([vectors[int(text.split()[1])] for text in queries])
    draw = random.Random(seed)
    topics = []
    qrels = {}
    rankings = {}
    for number, relevant in enumerate(judge(draw)):
        ranking = ranking_with(number, draw)
        for spelling in range(n_spellings):
            topic = Query(f'{number}-{spelling}', f'topic{" " * (spelling + 1)}{number}')
            topics.append(topic)
            qrels[topic.qid] = {relevant: 1}
            rankings[topic.qid] = ranking
    return adapt(
        searcher,
        [FixedRanker(rankings)],
        topics,
        qrels,
        seed=seed,
        reranker=UnmovedReranker().with_settings(reads=20),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ('judge', 'n_spellings'),
    [(random_judgments, 1), (random_judgments, 4), (shuffled_judgments, 1)],
)
def test_nothing_to_learn_is_not_claimed(searcher, judge, n_spellings, one_in):
    """Over 100 seeds, or 20 of them, at most 5% claims; a reranker that changes nothing gains 0 in
    each.
    """
    claims = 0
    seeds = range(0, 100, one_in(5))
    for seed in seeds:
        learnt = learn_by_chance(searcher, seed, judge, n_spellings)
        assert learnt.steps['and reranked'].tolist() == learnt.steps['and fused'].tolist()
        claims += learnt.estimate().is_convincing
    print(f'{judge.__name__}, {n_spellings} times each: {claims} claims')
    assert claims <= 0.05 * len(seeds)


@pytest.mark.slow
def test_what_was_learned_is_no_better_than_a_good_fusion(searcher, one_in):
    """Where both rankings know something, some fusion is truly better than interleaving. Maps and
    weights add nothing to the best of them, but in at most 5% of 100 seeds, or of 20.
    """
    claims = 0
    seeds = range(0, 100, one_in(5))
    for seed in seeds:
        learnt = learn_by_chance(searcher, seed, right_judgments, n_spellings=1)
        best = learnt.untuned.values[best_name(learnt.untuned.values)]
        is_better = learnt.held_out.mean() > best.mean()
        claims += is_better and paired_t_test(learnt.held_out, best).p < 0.05
    print(f'{claims} claims')
    assert claims <= 0.05 * len(seeds)

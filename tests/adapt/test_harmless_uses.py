"""What `--use` takes does not harm, also where the judgments teach nothing."""

import random

import numpy as np
import pytest
from judgments import FixedRanker
from test_false_claims import ranking_with

from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.adapt.offering import offered_search
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Query

N_JUDGED = 25
N_FRESH = 200
NOW = FusionSettings(FusionMethod.INTERPOLATION, weights=(0.6, 0.4))


class World:
    """Questions about 225 of 300 passages; dense and sparse rankings both know something.

    Only the first 25 are judged, and their judgments are shuffled.
    """

    def __init__(self, searcher, seed):
        self.draw = random.Random(seed)
        n_questions = N_JUDGED + N_FRESH
        self.numbers = self.draw.sample(range(300), n_questions)
        passages = searcher.index.vectors(np.arange(300))
        noise = np.random.default_rng(seed).normal(size=(300, searcher.dimension))
        self.vectors = (passages + 0.5 * passages.std() * noise).astype(np.float32)
        searcher.encode = self.encode
        self.searcher = searcher
        self.topics = [Query(str(number), f'topic {number}') for number in self.numbers]
        rankings = {str(number): ranking_with(number, self.draw) for number in self.numbers}
        self.sparse = FixedRanker(rankings)

    def encode(self, texts):
        return np.stack([self.vectors[int(text.split()[1])] for text in texts])

    def learn(self, seed):
        """Learn from shuffled judgments: a question has the relevant passage of another one."""
        judged = self.topics[:N_JUDGED]
        shuffled = self.draw.sample(self.numbers[:N_JUDGED], N_JUDGED)
        qrels = {}
        for topic, number in zip(judged, shuffled, strict=True):
            qrels[topic.qid] = {f'd{number}': 1}
        return adapt(self.searcher, [self.sparse], judged, qrels, seed, now=self.now())

    def now(self):
        """The present search."""
        return FixedRanker(self.fused(NOW, None, (0, 1))).with_settings(name='now')

    def fused(self, settings, query_map, order):
        """The run of all questions.

        Parameters
        ----------
        settings : how rankings are fused
        query_map : of the dense ranking; None for none
        order : positions of the rankings, of which the dense one is 0
        """
        dense = self.searcher.with_settings(query_map=query_map)
        runs = [
            dense.rank(self.topics, None, 1000),
            self.sparse.rank(self.topics, None, 1000),
        ]
        return fuse_runs([runs[position] for position in order], settings, 100)

    def reciprocal_ranks(self, run):
        """Of the right passage of each fresh question, among the best 10."""
        values = []
        for topic in self.topics[N_JUDGED:]:
            best = list(run[topic.qid].docids[:10])
            right = f'd{topic.qid}'
            values.append(1 / (1 + best.index(right)) if right in best else 0.0)
        return values


def settings_of(offered):
    values = dict(offered.fusion)
    if len(offered.rankings) == 1:
        return FusionSettings()
    return FusionSettings(values.pop('method', FusionMethod.INTERPOLATION), **values)


@pytest.mark.slow
def test_no_use_of_shuffled_judgments_harms(searcher, one_in):
    """Over 100 seeds, or 20 of them, at most 2% of uses harm.

    `--use` takes what `is_worth_using`. Each taken search is compared on 200 fresh questions with
    true judgments; it is harmful if its mean is lower and the paired t-test has p < 0.05.
    """
    taken = 0
    harmful = 0
    rejected_losses = 0
    seeds = range(0, 100, one_in(5))
    for seed in seeds:
        world = World(searcher, seed)
        learnt = world.learn(seed)
        offered = offered_search(learnt, ['tiny', 'fixed'])
        run = world.fused(settings_of(offered), offered.query_map, offered.rankings)
        after = world.reciprocal_ranks(run)
        before = world.reciprocal_ranks(world.fused(NOW, None, (0, 1)))
        is_loss = np.mean(after) < np.mean(before) and paired_t_test(after, before).p < 0.05
        is_taken = learnt.estimate().is_worth_using
        taken += is_taken
        harmful += is_taken and is_loss
        rejected_losses += is_loss and not is_taken
    print(f'{taken} taken, {harmful} of them harmful; {rejected_losses} losses refused')
    # Without the comparison with now, most of what is offered would harm.
    assert rejected_losses > 0
    assert harmful <= 0.02 * len(seeds)

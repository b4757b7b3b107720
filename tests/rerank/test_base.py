"""The contract of every reranker: order, ties, depth, and what it refuses."""

import re

import numpy as np
import pytest

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Candidate, Excerpt, Query, Ranking
from pyserini_repbert.rerank import Reranker


class Given(Reranker):
    """Scores by docid."""

    def __init__(self, **scores):
        self.scores = scores

    def score_lists(self, queries, lists, on_progress=None):
        return [
            np.array([self.scores[item.docid] for item in items], dtype=np.float32)
            for items in lists
        ]


def candidates(docids):
    return [Candidate(docid, 9.0 - place, f'text of {docid}') for place, docid in enumerate(docids)]


@pytest.mark.parametrize(
    ('given', 'expected'),
    [('dcba', 'bdca'), ('abcd', 'bacd'), ('cadb', 'bcad'), ('ca', 'ca'), ('ac', 'ac')],
)
def test_equal_scores_keep_the_order_of_the_stage_before(given, expected):
    ranked = Given(a=1.0, b=2.0, c=1.0, d=1.0).rerank('q', candidates(given))
    assert ''.join(item.docid for item in ranked) == expected
    assert [item.score for item in ranked] == [2.0] * given.count('b') + [1.0] * (
        len(given) - given.count('b')
    )
    assert [item.text for item in ranked] == [f'text of {docid}' for docid in expected]


def test_the_depth_cuts_and_nothing_given_changes():
    given = candidates('cab')
    before = list(given)
    reranker = Given(a=-1.0, b=-2.0, c=-1.0)
    assert [item.docid for item in reranker.rerank('q', given, 2)] == ['c', 'a']
    assert reranker.rerank('q', given, 0) == [] and len(reranker.rerank('q', given, 9)) == 3
    assert given == before


def test_a_label_has_the_last_part_of_a_path_and_the_depth():
    reranker = Given().with_settings(name='models/mine')
    assert reranker.label == 'mine'
    assert reranker.with_settings(reads=50).label == 'mine@50'
    assert Given().label == 'Given'


def test_an_identity_has_the_settings_that_change_a_ranking():
    reranker = Given().with_settings(name='mine')
    identity = {'reranker': 'Given', 'name': 'mine'}
    assert reranker.identity() == identity
    shallow = reranker.with_settings(reads=50, drop_rest=True, score_share=0.25)
    assert shallow.identity() == {**identity, 'k': 50, 'drop_rest': True, 'weight': 0.25}
    reranker.weights_sha256 = '0f'
    assert reranker.identity() == {**identity, 'weights_sha256': '0f'}


def test_a_setting_that_a_ranker_does_not_have_is_refused():
    expected = "Given has no setting 'treads': give one of its attributes, such as 'threads'"
    with pytest.raises(InputError, match=re.escape(expected)):
        Given().with_settings(threads=2, treads=2)


def test_a_score_that_is_not_finite_is_refused_by_its_candidate():
    reranker = Given(a=1.0, b=float('nan'), c=float('inf'))
    for given, named in (('abc', 'b'), ('acb', 'c'), ('ab', 'b')):
        message = f"the score of candidate '{named}' is not finite"
        with pytest.raises(DamagedFileError, match=message):
            reranker.rerank('q', candidates(given))


class ByText(Reranker):
    """Scores by text."""

    def __init__(self, **scores):
        self.scores = scores

    def score_lists(self, queries, lists, on_progress=None):
        return [np.array([self.scores[item.text] for item in items]) for items in lists]


def document(docid, score, texts):
    excerpts = [Excerpt(number, 0, 1, text) for number, text in enumerate(texts)]
    return Candidate(docid, score, 'whole', tuple(excerpts))


def test_a_document_is_scored_by_the_best_of_the_passages_that_are_read():
    documents = Ranking.of(
        [
            document('a', 9.0, ['low', 'mid', 'top']),
            document('b', 8.0, ['low']),
            document('c', 7.0, ['mid', 'high', 'low', 'top']),
            document('d', 6.0, []),
        ]
    )
    reranker = ByText(low=1.0, mid=2.0, high=3.0, top=9.0, whole=2.5)
    ranked = reranker.with_settings(n_excerpts=2).rank([Query('1', 'q')], {'1': documents})['1']
    assert list(zip(ranked.docids, ranked.scores, strict=True)) == [
        ('c', 3.0),
        ('d', 2.5),
        ('a', 2.0),
        ('b', 1.0),
    ]
    shown = [[passage.text for passage in hit.excerpts] for hit in ranked]
    assert shown == [['high', 'mid', 'low', 'top'], [], ['mid', 'low', 'top'], ['low']]


class Weighted(Reranker):
    """Scores by the length of the text, times a weight that it has learned."""

    def __init__(self, weight):
        self.weight = weight

    def score_lists(self, queries, lists, on_progress=None):
        return [
            np.array([self.weight * len(item.text) for item in items], np.float32)
            for items in lists
        ]


def test_a_learned_weight_of_its_own_is_no_share_of_the_score():
    given = [Candidate('a', 9.0, 'xx'), Candidate('b', 1.0, 'xxxx')]
    ranked = Weighted(0.25).with_settings(reads=2, score_share=None).rerank('q', given)
    assert [(hit.docid, hit.score) for hit in ranked] == [('b', 1.0), ('a', 0.5)]


def test_a_share_is_of_both_scores_scaled_to_0_and_1():
    """Before, a to c have 1, 0.5 and 0; by their new scores 0, 0.25 and 1."""
    reranker = Given(a=2.0, b=3.0, c=6.0).with_settings(score_share=0.75)
    given = Ranking.of(candidates('abc'))
    ranked = reranker.rank([Query('1', 'q')], {'1': given})['1']
    assert ranked.docids == ('c', 'b', 'a')
    assert ranked.scores == pytest.approx((0.75, 0.3125, 0.25))


def test_a_reranker_that_remembers_nothing_is_itself():
    reranker = Given(a=1.0)
    assert reranker.remembering() is reranker

"""`Fusion`: how deep its parts rank, and whose passages it gives."""

import pytest

from pyserini_repbert.fusion import Fusion, FusionSettings
from pyserini_repbert.ranking import Query, Ranker, Ranking


class FixedRanker(Ranker):
    """The same ranking for every topic; notes how deep it was asked to rank."""

    def __init__(self, docids, passages=None):
        self.name = docids
        self.passages = passages or {}
        self.ranking = Ranking(docids, range(len(docids), 0, -1))
        self.depths = []

    def _rank(self, topics, run, k, trace):
        self.depths.append(k)
        return {topic.qid: self.ranking for topic in topics}

    def texts(self, docids):
        return [self.passages.get(docid) for docid in docids]


@pytest.mark.parametrize(
    ('method', 'k', 'depth'),
    [
        ('interleave', 10, 10),
        ('interleave', 3000, 3000),
        ('interleave', None, None),
        ('rrf', 10, 1000),
        ('rrf', 3000, 3000),
        ('interpolation', None, None),
    ],
)
def test_the_depth_that_is_fused(method, k, depth):
    assert FusionSettings(method).depth_for(k) == depth
    assert FusionSettings(method, depth=7).depth_for(k) == 7
    parts = [FixedRanker('ab'), FixedRanker('bc')]
    Fusion(parts, FusionSettings(method)).rank([Query('q', 'text')], None, k)
    assert [part.depths for part in parts] == [[depth], [depth]]


def test_a_single_part_keeps_its_ranking():
    part = FixedRanker('ab')
    ranked = Fusion([part], FusionSettings('rrf')).rank([Query('q', 'text')], None, 10)
    assert ranked == {'q': Ranking('ab', [2.0, 1.0])}
    assert part.depths == [10]


def test_passages_are_those_of_the_first_part_that_has_any():
    empty = FixedRanker('ab')
    first = FixedRanker('cd', {'a': 'one'})
    second = FixedRanker('ef', {'a': 'other', 'b': 'two'})
    assert Fusion([empty, first, second]).texts(['b', 'a']) == [None, 'one']
    assert Fusion([empty, empty]).texts(['b', 'a']) == [None, None]

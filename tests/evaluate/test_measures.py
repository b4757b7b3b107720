import math

import pytest

from pyserini_repbert.errors import InputError, MissingDependencyError, UnknownNameError
from pyserini_repbert.evaluate import evaluate, parse_measures
from pyserini_repbert.ranking import Ranking

QRELS = {'1': {'a': 3, 'b': 0, 'c': 1}, '2': {'d': 1}, '3': {'e': 2}, '4': {'f': 0}}
RUN = {
    '1': Ranking(['b', 'c', 'x', 'a'], [4.0, 3.0, 2.0, 1.0]),
    '2': Ranking(['x', 'd'], [0.5, -0.5]),
    '3': Ranking([], []),
    '9': Ranking(['a'], [1.0]),
}


def values(run, *names):
    return evaluate(run, QRELS, parse_measures(names))


def test_by_hand():
    found = values(RUN, 'nDCG@10', 'MRR@10', 'R@1000', 'R(rel=2)@1000', 'AP(rel=1)@3', 'P@1')
    ideal = 3 + 1 / math.log2(3)
    ndcg = (1 / math.log2(3) + 3 / math.log2(5)) / ideal
    assert found.values['nDCG@10'] == pytest.approx({'1': ndcg, '2': 1 / math.log2(3), '3': 0, '4': 0})
    assert found.values['MRR@10'] == {'1': 0.5, '2': 0.5, '3': 0.0, '4': 0.0}
    assert found.values['R@1000'] == {'1': 1.0, '2': 1.0, '3': 0.0, '4': 0.0}
    assert found.values['R(rel=2)@1000'] == {'1': 1.0, '2': 0.0, '3': 0.0, '4': 0.0}
    assert found.values['AP(rel=1)@3'] == pytest.approx({'1': 1 / 4, '2': 1 / 2, '3': 0, '4': 0})
    assert found.values['P@1'] == dict.fromkeys(QRELS, 0.0)
    assert found.means['MRR@10'] == 0.25
    assert found.means['nDCG@10'] == pytest.approx((ndcg + 1 / math.log2(3)) / 4)
    assert found.without_hits == ('3', '4')


def test_names_stay_as_they_were_given():
    found = values(RUN, 'MRR@10', 'RR@10', 'MRR@10')
    assert list(found.means) == ['MRR@10', 'RR@10']
    assert found.means['MRR@10'] == found.means['RR@10'] == 0.25


def test_counts_are_summed():
    assert values(RUN, 'NumRet').means['NumRet'] == 6


def test_scores_decide_and_not_the_order_of_the_list():
    assert values({'2': Ranking(['x', 'd'], [1.0, 2.0])}, 'MRR@10').values['MRR@10']['2'] == 1.0


def test_a_run_without_any_judged_topic():
    found = values({'9': Ranking(['a'], [1.0])}, 'nDCG@10')
    assert found.means == {'nDCG@10': 0.0}
    assert len(found.without_hits) == 4


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('nDGC@10', r"measure 'nDGC@10' is unknown \(did you mean 'nDCG'"),
        ('foo', r"measure 'foo' is unknown: known are AP, "),
        ('map', r"measure 'map' is unknown \(did you mean 'AP'\?\)"),
        ('ndcg_cut_10', r"measure 'ndcg_cut_10' is unknown \(did you mean 'nDCG@10'\?\)"),
        ('nDCG@ten', r"expected a form such as 'nDCG@10'"),
        ('nDCG(', r"expected a form such as 'nDCG@10'"),
        ('P(cutoff=zero)', 'P@10'),
        ('P', r"^measure 'P' needs a cut-off, as in 'P@10'$"),
    ],
)
def test_unknown_measure(name, message):
    with pytest.raises(UnknownNameError, match=message):
        parse_measures(['nDCG@10', name])


def test_a_relevant_grade_is_above_unjudged():
    with pytest.raises(InputError, match='rel is 0, a grade of at least 1 was expected'):
        parse_measures(['AP(rel=0)'])


def test_grades_that_a_measure_cannot_take():
    with pytest.raises(InputError, match='cannot be computed on grades from 0 to 200'):
        evaluate({'1': Ranking(['a'], [1.0])}, {'1': {'a': 200, 'b': 0}}, parse_measures(['ERR@10']))


def test_measure_that_needs_another_package(monkeypatch):
    import ir_measures

    for provider in ir_measures.DefaultPipeline.providers:
        if provider.NAME == 'cwl_eval':
            monkeypatch.setattr(provider, 'is_available', lambda: False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ir-measures\[cwl_eval\]'"):
        parse_measures(['RBP(rel=1)'])

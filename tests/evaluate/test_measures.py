import math
import weakref

import pytest

from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.evaluate import evaluate, measures, parse_measures
from pyserini_repbert.evaluate.measures import judged_only
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
    assert found.values['nDCG@10'] == pytest.approx(
        {'1': ndcg, '2': 1 / math.log2(3), '3': 0, '4': 0}
    )
    assert found.values['MRR@10'] == {'1': 0.5, '2': 0.5, '3': 0.0, '4': 0.0}
    assert found.values['R@1000'] == {'1': 1.0, '2': 1.0, '3': 0.0, '4': 0.0}
    assert found.values['R(rel=2)@1000'] == {'1': 1.0, '2': 0.0, '3': 0.0, '4': 0.0}
    assert found.values['AP(rel=1)@3'] == pytest.approx({'1': 1 / 4, '2': 1 / 2, '3': 0, '4': 0})
    assert found.values['P@1'] == dict.fromkeys(QRELS, 0.0)
    assert found.means['MRR@10'] == 0.25
    assert found.means['nDCG@10'] == pytest.approx((ndcg + 1 / math.log2(3)) / 4)
    assert found.without_hits == ('3', '4')


def test_order_of_equal_scores():
    """As docs/guides/evaluating.md says: the last docid first, but for RR@k and Judged@k."""
    run = {'1': Ranking(['a', 'b'], [1.0, 1.0])}
    qrels = {'1': {'a': 1, 'other': 0}}
    names = ('RR', 'AP', 'nDCG@10', 'P@1', 'R@1', 'Success@1', 'ERR@1', 'RR@10', 'Judged@1')
    means = evaluate(run, qrels, parse_measures(names)).means
    last_first = [0.5, 0.5, 1 / math.log2(3), 0, 0, 0, 0]
    assert list(means.values()) == pytest.approx([*last_first, 1, 1])


def test_topics_are_evaluated_in_blocks(monkeypatch):
    qrels = {str(number): {'a': number % 3} for number in range(9)}
    run = {qid: HeldRanking(['b', 'a', qid], [3.0, 2.0, 1.0]) for qid in qrels}
    names = parse_measures(['MRR@10', 'nDCG@10'])
    expected = evaluate(run, qrels, names)
    monkeypatch.setattr(measures, '_TOPICS_AT_ONCE', 2)
    held = weakref.WeakSet(run.values())

    def rankings():
        while run:
            assert len(held) <= len(run) + 3
            yield run.popitem()

    assert measures.evaluate_topics(rankings(), qrels, names) == expected


class HeldRanking(Ranking):
    """A ranking that may be referred to weakly."""


def test_names_stay_as_they_were_given():
    found = values(RUN, 'MRR@10', 'RR@10', 'MRR@10')
    assert list(found.means) == ['MRR@10', 'RR@10']
    assert found.means['MRR@10'] == found.means['RR@10'] == 0.25


def test_a_run_without_any_judged_topic():
    found = values({'9': Ranking(['a'], [1.0])}, 'nDCG@10')
    assert found.means == {'nDCG@10': 0.0}
    assert len(found.without_hits) == 4


def test_names_of_trec_eval():
    names = ['map', 'ndcg_cut_10', 'recip_rank', 'P_5', 'recall_1000']
    assert [str(named.measure) for named in parse_measures(names)] == [
        'AP',
        'nDCG@10',
        'RR',
        'P@5',
        'R@1000',
    ]
    assert [named.name for named in parse_measures(names)] == names


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('nDGC@10', r"measure 'nDGC@10' is unknown \(did you mean 'nDCG'"),
        ('nDCG(', r"expected a form such as 'nDCG@10'"),
        ('P', r"^measure 'P' needs a cut-off, as in 'P@10'$"),
    ],
)
def test_unknown_measure(name, message):
    with pytest.raises(UnknownNameError, match=message):
        parse_measures(['nDCG@10', name])


def test_grades_that_a_measure_cannot_take():
    with pytest.raises(InputError, match=r'grades from 0 to 5 \(ERR@10: expected grades up to 4\)'):
        evaluate({'1': Ranking(['a'], [1.0])}, {'1': {'a': 5, 'b': 0}}, parse_measures(['ERR@10']))
    with pytest.raises(InputError, match=r'grades from 0 to 1000000 \(expected -127 to 127\)'):
        evaluate(
            {'1': Ranking(['a'], [1.0])},
            {'1': {'a': 1_000_000, 'b': 0}},
            parse_measures(['nDCG@10']),
        )


def test_topics_that_have_only_negative_grades():
    """trec_eval has no grade to count then: it used those of another topic, or wrote where it
    must not.
    """
    run = {qid: Ranking(['a', 'b'], [2.0, 1.0]) for qid in '12'}
    for grade in (-1, -2, -100):
        found = evaluate(
            run,
            {'1': {'a': 100}, '2': {'a': grade}},
            parse_measures(['nDCG@10', 'Bpref', 'Judged@2']),
        )
        assert found.values['nDCG@10'] == found.values['Bpref'] == {'1': 1.0, '2': 0.0}
        assert found.values['Judged@2'] == {'1': 0.5, '2': 0.5}


def test_negative_grades_are_no_judgments_of_bpref_and_infap():
    """Irrelevant b above relevant a costs Bpref its one preference; b of grade -1 was pooled,
    and never judged.
    """
    run = {'1': Ranking(['b', 'a'], [2.0, 1.0])}
    for grade, bpref in ((0, 0.0), (-1, 1.0), (-2, 1.0)):
        found = evaluate(run, {'1': {'a': 1, 'b': grade}}, parse_measures(['Bpref', 'P@2']))
        assert found.means == {'Bpref': bpref, 'P@2': 0.5}


@pytest.mark.parametrize('docid', ['\ud800', 'b\0a'])
def test_docids_that_code_in_c_cannot_read(docid):
    with pytest.raises(
        InputError, match="topic '1' has a docid with a character that no identifier can have"
    ):
        evaluate({'1': Ranking([docid, 'b'], [2.0, 1.0])}, {'1': {'b': 1}}, parse_measures(['P@1']))


@pytest.mark.parametrize('qid', ['no_query', '2-1', '\ud800', 'zwölf'])
def test_any_qid_is_a_qid(qid):
    """ERR by hand, of the only hit with grade 1: (2^1 - 1) / 2^4."""
    qrels = {'1': {'a': 0}, qid: {'a': 1}}
    run = {'1': Ranking(['a'], [1.0]), qid: Ranking(['a'], [1.0])}
    found = evaluate(run, qrels, parse_measures(['ERR@10', 'nDCG@10']))
    assert found.values['ERR@10'] == {'1': 0.0, qid: pytest.approx(1 / 16, abs=1e-4)}
    assert found.means['nDCG@10'] == 0.5


@pytest.mark.parametrize(
    'name',
    [
        'P@0',
        'P@00',
        'nDCG@0',
        'R@0',
        'AP@0',
        'Success@0',
        'RR@0',
        'Judged@0',
        'ERR@0',
        'P@True',
        'P@2147483648',
        'AP(rel=128)',
        'Bpref(rel=100000000)',
        'P(rel=True)@1',
        'IPrec@0.101',
        'IPrec@1.5',
        'IPrec@1e999',
        'SetF(beta=1e-5)',
        'SetF(beta=1e999)',
        'Compat(p=1.5)',
        'Compat(p=1e999)',
        'Compat(p=1e300)',
        'nDCG(gains={1:99999999999999999999})@5',
        'nDCG(gains={1:1.5})@5',
        'nDCG(gains={"a":1,2:2})@5',
        'nDCG(gains={1:None})@5',
        'nDCG(gains={1:True})',
    ],
)
def test_parameters_that_no_measure_takes(name):
    with pytest.raises(InputError, match=r'^measure .* expected|^measure .* as in'):
        parse_measures([name])


def test_the_ends_of_what_parameters_may_be():
    qrels = {'1': {'a': 3, 'b': 0}}
    run = {'1': Ranking(['b', 'a'], [2.0, 1.0])}
    names = ['P@2147483647', 'P@2', 'IPrec@0.25', 'IPrec@1.0', 'SetF(beta=0.0)']
    means = evaluate(run, qrels, parse_measures(names)).means
    assert list(means.values()) == [1 / (2**31 - 1), 0.5, 0.5, 0.5, 0.5]


def test_gains_by_grade():
    """The run has b, of gain 1, above a, of gain 127."""
    run = {'1': Ranking(['b', 'a'], [2.0, 1.0])}
    measures = parse_measures(['nDCG(gains={0:1,3:127})@2'])
    means = evaluate(run, {'1': {'a': 3, 'b': 0}}, measures).means
    ideal = 127 + 1 / math.log2(3)
    assert list(means.values()) == [pytest.approx((1 + 127 / math.log2(3)) / ideal)]


def test_a_condensed_list_has_judged_hits_only():
    run = {'1': Ranking(['x', 'b', 'y', 'a'], [4.0, 3.0, 2.0, 1.0]), 'other': Ranking(['a'], [1.0])}
    condensed = judged_only(run, {'1': {'b': 0, 'a': 1}})
    assert condensed['1'].docids == ('b', 'a')
    assert condensed['other'].docids == ()

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate import (
    consistency_factors,
    evaluate_depths,
    evaluate_fusions,
    parse_measures,
    recall_at_depths,
)
from pyserini_repbert.evaluate.measures import tabulate_means
from pyserini_repbert.evaluate.studies.depths import count_unscored, rerank_top
from pyserini_repbert.fusion import FusionSettings
from pyserini_repbert.ranking import Ranking


def ranked(text):
    docids = text.split()
    return Ranking(docids, [float(-i) for i in range(len(docids))])


QRELS = {'1': {'r': 1, 's': 2}, '2': {'t': 1}}
A = {'1': ranked('a r b s'), '2': ranked('a b c'), '9': ranked('z')}
B = {'1': ranked('s c'), '2': ranked('t a')}


def test_fusion_table():
    """a + b: [a s r c b], [a t b c]; b + a: [s a c r b], [t a b c]."""
    measures = parse_measures(['MRR@10', 'R@2'])
    table = tabulate_means(evaluate_fusions({'A': A, 'B': B}, QRELS, measures))
    assert table['MRR@10'] == {
        'A': {'A': pytest.approx(1 / 4), 'B': pytest.approx(1 / 2)},
        'B': {'A': pytest.approx(1.0), 'B': pytest.approx(1.0)},
    }
    assert table['R@2'] == {
        'A': {'A': pytest.approx(1 / 4), 'B': pytest.approx(3 / 4)},
        'B': {'A': pytest.approx(3 / 4), 'B': pytest.approx(3 / 4)},
    }


def test_fusion_table_truncates_fused_rankings():
    short = evaluate_fusions({'A': A, 'B': B}, QRELS, parse_measures(['R@1000']), k=1)
    assert short['B']['A'].means['R@1000'] == pytest.approx(3 / 4)
    assert short['A']['B'].means['R@1000'] == 0.0


def test_fused_ties_keep_the_order_of_the_fused_run():
    """a and b tie, whichever run comes first: a is first by docid, where trec_eval would put b."""
    runs = {'A': {'1': ranked('a')}, 'B': {'1': ranked('b')}}
    for method in ('rrf', 'interpolation'):
        settings = FusionSettings(method)
        fused = evaluate_fusions(runs, {'1': {'a': 1}}, parse_measures(['MRR@10']), settings)
        assert tabulate_means(fused)['MRR@10'] == {
            'A': {'A': 1.0, 'B': 1.0},
            'B': {'A': 1.0, 'B': 0.0},
        }


def test_fusion_table_with_the_constant_of_reciprocal_ranks():
    """y is rank 1 and 4, x rank 2 and 2: 1/2 + 1/5 > 1/3 + 1/3 for 1, 1/61 + 1/64 < 1/62 + 1/62 for
    60.
    """
    runs = {'A': {'1': ranked('y x')}, 'B': {'1': ranked('p x q y')}}
    measures = parse_measures(['MRR@10'])
    qrels = {'1': {'y': 1}}
    with_1 = evaluate_fusions(runs, qrels, measures, FusionSettings('rrf', rrf_k=1))
    assert with_1['A']['B'].means['MRR@10'] == 1.0
    with_60 = evaluate_fusions(runs, qrels, measures, FusionSettings('rrf'))
    assert with_60['A']['B'].means['MRR@10'] == 0.5


def test_fusion_table_with_the_weight_of_interpolation():
    """x has 0.2 * 4, y 0.2 * 1 + 0.8 * 2; with a half each, x has 2 and y 1.5."""
    runs = {'A': {'1': Ranking(['x', 'y'], [4.0, 1.0])}, 'B': {'1': Ranking(['y'], [2.0])}}
    measures = parse_measures(['MRR@10'])
    qrels = {'1': {'y': 1}}
    settings = FusionSettings('interpolation', weights=(0.2, 0.8))
    uneven = evaluate_fusions(runs, qrels, measures, settings)
    assert uneven['A']['B'].means['MRR@10'] == 1.0
    even = evaluate_fusions(runs, qrels, measures, FusionSettings('interpolation'))
    assert even['A']['B'].means['MRR@10'] == 0.5


def test_consistency():
    """Top 1: a in {s c} no, a in {t a} yes; top 2: 0 of 2, 1 of 2; top 3: 0 of 3, 1 of 3; query
    9: none.
    """
    factors = consistency_factors(A, B, [1, 2, 3])
    assert factors == pytest.approx({1: 1 / 3, 2: 1 / 6, 3: 1 / 9})


def test_consistency_of_lists_shorter_than_the_depth():
    factors = consistency_factors(A, B, [10])
    assert factors[10] == pytest.approx((1 / 4 + 1 / 3 + 0) / 3)


def test_a_run_is_consistent_with_itself():
    assert consistency_factors(A, A, [1, 10]) == {1: 1.0, 10: 1.0}


def test_recall_at_depths():
    assert recall_at_depths(A, QRELS, [1, 2, 4]) == pytest.approx({1: 0, 2: 1 / 4, 4: 1 / 2})
    assert recall_at_depths(A, QRELS, [1, 4], rel=2) == pytest.approx({1: 0, 4: 1 / 2})


@pytest.mark.parametrize(
    ('n', 'expected'),
    [
        (0, 'a b c d'),
        (1, 'a b c d'),
        (2, 'b a c d'),
        (3, 'c b a d'),
        (4, 'c b a d'),
        (99, 'c b a d'),
    ],
)
def test_rerank_top(n, expected):
    found = rerank_top(ranked('a b c d'), ranked('c b a d'), n)
    assert found == Ranking(expected.split(), [1, 1 / 2, 1 / 3, 1 / 4])


def test_rerank_top_without_a_score():
    assert rerank_top(ranked('a b c d'), ranked('c x b'), 3).docids == ('c', 'b', 'a', 'd')
    assert rerank_top(ranked('a b c'), ranked(''), 3).docids == ('a', 'b', 'c')


def test_hits_without_a_score_are_counted():
    first = {'1': ranked('a b c d')}
    assert count_unscored(first, {'1': ranked('c x b')}, QRELS, 3) == 1
    assert count_unscored(first, {}, QRELS, 1000) == 4


def test_reranked_depths():
    reranked = {'1': ranked('s r b a'), '2': ranked('c b a')}
    measures = parse_measures(['MRR@10'])
    evaluations = evaluate_depths(A, reranked, QRELS, measures, [0, 1, 2, 4])
    by_depth = {depth: evaluation.means['MRR@10'] for depth, evaluation in evaluations}
    assert by_depth == {0: 0.25, 1: 0.25, 2: 0.5, 4: 0.5}


def test_depths_below_0_are_refused():
    with pytest.raises(InputError, match='at least 0'):
        next(evaluate_depths(A, {}, QRELS, [], [-1]))


def test_depth_zero_keeps_the_scores_of_the_first_stage():
    """trec_eval orders ties by descending docid."""
    tied = {'2': Ranking(['a', 't'], [1.0, 1.0])}
    ((_, alone),) = evaluate_depths(tied, tied, {'2': {'t': 1}}, parse_measures(['AP']), [0])
    assert alone.means['AP'] == 1.0

import gc
import itertools
import math
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.data.runs import strictly_decreasing
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import FusionMethod, fuse
from pyserini_repbert.fusion.fusing import pyserini_hybrid, scaled
from pyserini_repbert.fusion.methods import (
    FusionName,
    Normalization,
    NormalizationName,
    methods_text,
)
from pyserini_repbert.ranking import Ranking

A = {
    'q1': Ranking(['a', 'b', 'c'], [9.0, 5.0, 1.0]),
    'q2': Ranking(['x'], [1.0]),
    'q4': Ranking([], []),
}
B = {'q3': Ranking(['y'], [2.0]), 'q1': Ranking(['c', 'd'], [4.0, 3.0])}


def test_interleave():
    assert fuse([A, B]) == {
        'q1': Ranking(['a', 'c', 'b', 'd'], [1, 1 / 2, 1 / 3, 1 / 4]),
        'q2': Ranking(['x'], [1.0]),
        'q3': Ranking(['y'], [1.0]),
        'q4': Ranking([], []),
    }


def test_the_first_run_leads():
    assert fuse([B, A], k=3)['q1'].docids == ('c', 'a', 'd')


def test_queries_keep_the_order_of_the_runs():
    assert list(fuse([A, B])) == ['q1', 'q2', 'q4', 'q3']
    assert list(fuse([B, A])) == ['q3', 'q1', 'q2', 'q4']


def test_rrf():
    fused = fuse([A, B], 'rrf', rrf_k=1)['q1']
    assert fused.docids == ('c', 'a', 'b', 'd')
    assert fused.scores == pytest.approx([1 / 4 + 1 / 2, 1 / 2, 1 / 3, 1 / 3])


def test_rrf_without_a_constant():
    """c 1/3 + 1, a 1, b 1/2 and d 1/2"""
    fused = fuse([A, B], 'rrf', rrf_k=0)['q1']
    assert fused.docids == ('c', 'a', 'b', 'd')
    assert fused.scores == pytest.approx([4 / 3, 1, 1 / 2, 1 / 2])


def test_rrf_ties_do_not_depend_on_the_order_of_the_runs():
    """1/61 + 1/62 + 1/67 in any order; summed naively from left to right, the last bits differ."""
    sums = {(1 / 61 + 1 / 62) + 1 / 67, (1 / 62 + 1 / 67) + 1 / 61, (1 / 67 + 1 / 61) + 1 / 62}
    assert len(sums) > 1
    scores = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    runs = []
    for docids in ('p q a b c d r', 'r p e f g h q', 'q r i j k l p'):
        runs.append({'1': Ranking(docids.split(), scores)})
    fused = fuse(runs, 'rrf')['1']
    assert fused.docids[:3] == ('p', 'q', 'r')
    assert len(set(fused.scores[:3])) == 1
    assert fuse(runs[::-1], 'rrf')['1'] == fused


def test_interpolation_of_normalised_scores():
    """minmax: a 1, b .5, c 0 and c 1, d 0. zscore: the distances 8, 4, 0 and 1, 0 in the
    deviations 3.266 and 0.5.
    """
    minmax = fuse([A, B], 'interpolation', alpha=0.4, normalize='minmax')
    assert minmax['q1'] == Ranking(['c', 'a', 'b', 'd'], [0.6, 0.4, 0.2, 0.0])
    assert minmax['q2'] == Ranking(['x'], [0.4])  # the best of a ranking whose scores are all alike
    zscore = fuse([A, B], 'interpolation', alpha=0.4, normalize='zscore')['q1']
    assert zscore.docids == ('c', 'a', 'b', 'd')
    assert zscore.scores == pytest.approx(
        [0.6 * 2, 0.4 * 8 / 3.26599, 0.4 * 4 / 3.26599, 0], abs=1e-5
    )


def test_interpolation_of_any_number_of_runs():
    """a 9, b 5, c 1 + 2 * 4 + 0.5 * 1, d 2 * 3."""
    third = {'q1': Ranking(['c'], [1.0])}
    fused = fuse([A, B, third], 'interpolation', alpha=[1, 2, 0.5], normalize='none')['q1']
    assert fused == Ranking(['c', 'a', 'd', 'b'], [9.5, 9.0, 6.0, 5.0])
    assert fuse([A, B], 'interpolation', alpha=[0.25, 0.75]) == fuse(
        [A, B], 'interpolation', alpha=0.25
    )


def test_a_weight_of_zero_leaves_a_run_without_a_say():
    """c 4 and d 3, as in the second run; a and b 0."""
    fused = fuse([A, B], 'interpolation', alpha=[0, 1], normalize='none')['q1']
    assert fused == Ranking(['c', 'd', 'a', 'b'], [4.0, 3.0, 0.0, 0.0])


@pytest.mark.parametrize('k', [1, 2, 3, 4, 5, 6, 7, 8, None])
def test_equal_sums_go_by_docid_also_where_the_list_is_cut(k):
    """b, d, e 3 each, after z 4 and before the pair a, c 2 each, and y 1 alone."""
    first = {'q': Ranking(['z', 'd', 'c', 'y'], [8.0, 6.0, 4.0, 2.0])}
    second = {'q': Ranking(['e', 'b', 'a'], [6.0, 6.0, 4.0])}
    fused = fuse([first, second], 'interpolation', k=k, normalize='none')['q']
    assert (
        fused
        == Ranking(['z', 'b', 'd', 'e', 'a', 'c', 'y'], [4.0, 3.0, 3.0, 3.0, 2.0, 2.0, 1.0])[:k]
    )


def test_scores_keep_their_sign_at_zero():
    """0 times -3 is -0.0, and stays so where the other run lacks the document."""
    runs = [{'q': Ranking(['b'], [-3.0])}, {'q': Ranking([], [])}]
    fused = fuse(runs, 'interpolation', alpha=0, normalize='none')['q']
    assert repr(fused.scores) == '(-0.0,)'


def test_the_collector_of_garbage_is_as_before():
    for turn in (gc.enable, gc.disable):
        turn()
        try:
            before = gc.isenabled()
            fuse([A, B])
            with pytest.raises(TypeError):
                fuse([{'q': None}, B])
            assert gc.isenabled() is before
        finally:
            gc.enable()


def test_interpolation():
    fused = fuse([A, B], 'interpolation', alpha=0.25, normalize='none')['q1']
    assert fused.docids == ('c', 'a', 'd', 'b')
    assert fused.scores == pytest.approx([0.25 * 1 + 0.75 * 4, 0.25 * 9, 0.75 * 3, 0.25 * 5])


@pytest.mark.parametrize('method', list(FusionMethod))
@pytest.mark.parametrize('k', [0, 1, 2, None])
def test_k(method, k):
    whole = fuse([A, B], method, k=None)
    fused = fuse([A, B], method, k=k)
    assert fused == {qid: ranking[:k] for qid, ranking in whole.items()}


@pytest.mark.parametrize('method', list(FusionMethod))
def test_candidates_of_searchers_fuse_as_rankings_do(method):
    a = {qid: list(ranking) for qid, ranking in A.items()}
    b = {qid: list(ranking) for qid, ranking in B.items()}
    assert fuse([a, b], method) == fuse([A, B], method)


@pytest.mark.parametrize('method', list(FusionMethod))
def test_a_candidate_that_comes_twice_counts_once(method):
    twice = {qid: [*ranking, *ranking[:1]] for qid, ranking in A.items()}
    assert fuse([twice, B], method) == fuse([A, B], method)


@pytest.mark.parametrize(
    ('runs', 'options', 'message'),
    [
        ([A, B], {'k': -1}, 'cannot keep -1'),
        ([A, B], {'method': 'rrf', 'rrf_k': -1}, 'rrf_k is -1'),
        ([A, B], {'method': 'interpolation', 'alpha': 1.5}, 'alpha is 1.5'),
        ([A], {'method': 'interpolation'}, 'given 1 runs, exactly two expected'),
        ([A, B], {'method': 'interpolation', 'alpha': [1.0]}, 'weights 1.0 were given for 2 runs'),
        ([A, B], {'method': 'interpolation', 'alpha': [1.0, -0.5]}, 'weights 1.0 -0.5 were given'),
        ([A, B], {'method': 'interpolation', 'alpha': [1.0, math.inf]}, 'weights 1.0 inf were'),
        ([A, B], {'method': 'interpolation', 'alpha': [0.0, 0.0]}, 'not all of them 0'),
        ([A, B, A], {'method': 'interpolation', 'alpha': [1.0, 1.0]}, 'were given for 3 runs'),
        ([], {}, 'given 0 runs, at least one expected'),
    ],
)
def test_refused(runs, options, message):
    with pytest.raises(InputError, match=message):
        fuse(runs, **options)


ranked = st.lists(
    st.tuples(st.sampled_from('abcdefgh'), st.integers(-8, 8)), unique_by=lambda pair: pair[0]
)
run_of = st.dictionaries(st.sampled_from(['1', '2', '3']), ranked.filter(bool), min_size=1)


def run_of_pairs(pairs_of):
    """A run of (docid, score) pairs by qid."""
    run = {}
    for qid, pairs in pairs_of.items():
        ordered = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
        run[qid] = Ranking([docid for docid, _ in ordered], [score / 4 for _, score in ordered])
    return run


def trec_rows(run):
    """The rows of a run as Pyserini's `TrecRun` takes them."""
    rows = []
    for qid, ranking in run.items():
        for rank, hit in enumerate(ranking, 1):
            rows.append((qid, 'Q0', hit.docid, rank, hit.score, 'tag'))
    return rows


def assert_equals_theirs(run, theirs):
    """Compare a run with a `TrecRun`, whose queries are sorted."""
    keys = []
    scores = []
    for qid in sorted(run):
        keys += [(qid, docid) for docid in run[qid].docids]
        scores += run[qid].scores
    table = theirs.run_data
    assert keys == list(zip(table['topic'], table['docid'], strict=True))
    assert scores == pytest.approx(list(table['score']), abs=1e-12)


@given(run_of, run_of)
@settings(max_examples=15, deadline=None)
def test_same_as_pyserini(first, second):
    fusion = pytest.importorskip('pyserini.fusion')
    from pyserini.trectools import TrecRun

    runs = [run_of_pairs(first), run_of_pairs(second)]
    theirs = [TrecRun.from_list(trec_rows(run)) for run in runs]
    by_rank = fusion.reciprocal_rank_fusion(theirs, rrf_k=60, k=5)
    assert_equals_theirs(fuse(runs, 'rrf', k=5), by_rank)
    by_score = fusion.interpolation(theirs, alpha=0.25, k=5)
    assert_equals_theirs(fuse(runs, 'interpolation', k=5, alpha=0.25, normalize='none'), by_score)


@pytest.mark.parametrize(
    ('scores', 'scale', 'expected'),
    [
        # the mean is 2, the deviations 1, 0, -1: standard deviation sqrt(2/3)
        ([3e-200, 2e-200, 1e-200], 'zscore', [2 / math.sqrt(2 / 3), 1 / math.sqrt(2 / 3), 0.0]),
        ([1e300, 0.0, -1e300], 'zscore', [2 / math.sqrt(2 / 3), 1 / math.sqrt(2 / 3), 0.0]),
        ([1e308, 0.0, -1e308], 'minmax', [1.0, 0.5, 0.0]),
        ([5e-324, 0.0], 'minmax', [1.0, 0.0]),
        ([3.0, 3.0], 'zscore', [1.0, 1.0]),
        ([4.0, 1.0, 0.0, -8.0], 'max', [1.0, 0.25, 0.0, 0.0]),
        ([-1.0, -2.0, -5.0], 'max', [1.0, 1 / 2, 1 / 5]),
        ([0.0, -1.0, -1e308], 'max', [1.0, 1 / 2, 0.0]),
    ],
)
def test_scores_of_any_size_are_normalised(scores, scale, expected):
    """The same spread gives the same values, however great or small the scores are."""
    assert scaled(scores, Normalization(scale)).tolist() == pytest.approx(expected)


@given(
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
    scale=st.sampled_from([Normalization.MINMAX, Normalization.ZSCORE]),
)
def test_normalised_scores_are_finite_and_keep_their_order(scores, scale):
    values = scaled(sorted(scores, reverse=True), scale).tolist()
    assert all(math.isfinite(value) and value >= 0 for value in values)
    assert values == sorted(values, reverse=True)


@given(
    scores=st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=8),
    power=st.integers(-500, 500),
)
def test_a_power_of_two_changes_no_digit(scores, power):
    scores = [score for score in scores if score == 0 or abs(score) > 1e-6] or [1.0]
    times = [math.ldexp(score, power) for score in scores]
    for scale in (Normalization.MINMAX, Normalization.ZSCORE):
        assert scaled(times, scale).tolist() == scaled(scores, scale).tolist()


@pytest.mark.parametrize('n_runs', [2, 3])
@pytest.mark.parametrize(
    ('weight', 'scores', 'normalize'),
    [
        (1.0, [1.5e308, -1.5e308], 'none'),  # the sum is too great
        (3.0, [1.5e308, -1.5e308], 'none'),  # a product is
        (1e308, [2.0, 1.0], 'minmax'),
    ],
)
def test_sums_that_no_number_holds_are_refused(n_runs, weight, scores, normalize):
    runs = [{'q': Ranking(['a', 'b'], scores)}] * n_runs
    with pytest.raises(InputError, match='fused scores are beyond'):
        fuse(runs, 'interpolation', alpha=[weight] * n_runs, normalize=normalize)


@given(
    lists=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
        min_size=2,
        max_size=4,
    ),
    scale=st.sampled_from(['minmax', 'zscore']),
)
def test_fused_normalised_scores_are_finite_and_are_written_in_their_order(lists, scale):
    runs = []
    for scores in lists:
        ordered = sorted(scores, reverse=True)
        runs.append({'q': Ranking([f'd{i}' for i in range(len(scores))], ordered)})
    fused = fuse(runs, 'interpolation', alpha=[1.0] * len(runs), normalize=scale)['q']
    assert all(math.isfinite(score) for score in fused.scores)
    written = strictly_decreasing(fused.scores)
    assert all(above > below for above, below in itertools.pairwise(written))


@pytest.mark.parametrize('greatest', [1.5e308, 1.0, 1e-320])
def test_pyserinis_hybrid_normalises_scores_of_any_size(greatest):
    """Each ranking has 0.5, 0 and -0.5; the first counts whole, the second a tenth."""
    run = {'q': Ranking(['a', 'b', 'c'], [greatest, 0.0, -greatest])}
    fused = pyserini_hybrid([run, run], None, normalization=True)['q']
    assert fused.docids == ('a', 'b', 'c')
    assert fused.scores == pytest.approx([0.55, 0.0, -0.55])


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="fusion method 'max' is unknown: expected one of"):
        FusionMethod('max')


def test_names_for_annotations_are_those_of_the_classes():
    assert get_args(FusionName) == tuple(FusionMethod)
    assert get_args(NormalizationName) == tuple(Normalization)


def test_the_help_text_names_every_method():
    text = methods_text()
    assert text.startswith('interleave: alternate; rrf: add reciprocal ranks; ')
    for method in FusionMethod:
        assert f'{method}: ' in text

import numpy as np
import pytest

from pyserini_repbert.models.cross_encoder import log_probabilities, logit_differences
from pyserini_repbert.rerank import aggregate
from pyserini_repbert.systems.duobert.aggregation import (
    aggregate_differences,
    sampled_pairs,
)

NAN = float('nan')
P = [[NAN, 0.9, 0.5, 0.2], [0.4, NAN, 0.6, 0.6], [0.5, 0.7, NAN, 0.3], [0.8, 0.1, 0.7, NAN]]


@pytest.mark.parametrize(
    ('method', 'expected'),
    [
        ('sum', [1.6, 1.6, 1.5, 1.6]),
        ('binary', [1, 2, 1, 2]),  # 0.5 itself is no win
        ('min', [0.2, 0.4, 0.3, 0.1]),
        ('max', [0.9, 0.6, 0.7, 0.8]),
    ],
)
def test_the_methods_against_hand_computed_answers(method, expected):
    found = aggregate(P, method)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with_numbers = np.where(np.eye(4, dtype=bool), 1.0, np.nan_to_num(np.array(P)))
    np.testing.assert_array_equal(aggregate(with_numbers, method), found)


def test_sample_is_the_sum_over_a_seeded_drawing():
    used = sampled_pairs(4, 2, seed=5)
    assert not np.diagonal(used).any()
    assert used.sum(axis=1).tolist() == [2] * 4
    matrix = np.nan_to_num(np.array(P))
    np.testing.assert_allclose(
        aggregate(P, 'sample', samples=2, seed=5), (matrix * used).sum(axis=1)
    )
    holes = np.where(used, P, NAN)
    np.testing.assert_array_equal(
        aggregate(holes, 'sample', samples=2, seed=5), aggregate(P, 'sample', 2, 5)
    )
    assert len({sampled_pairs(9, 3, seed).tobytes() for seed in range(20)}) > 15
    np.testing.assert_allclose(aggregate(P, 'sample', samples=3), aggregate(P, 'sum'))
    np.testing.assert_allclose(aggregate(P, 'sample', samples=99), aggregate(P, 'sum'))


def test_the_seed_is_0_unless_it_is_given():
    matrix = np.random.default_rng(1).random((9, 9))
    differences = np.log(matrix / (1 - matrix))
    assert (
        sampled_pairs(9, 3).tolist()
        == sampled_pairs(9, 3, 0).tolist()
        != sampled_pairs(9, 3, 1).tolist()
    )
    for function, values in ((aggregate, matrix), (aggregate_differences, differences)):
        found = [function(values, 'sample', 3, *seed).tolist() for seed in ((), (0,), (1,))]
        assert found[0] == found[1] != found[2]


@pytest.mark.parametrize('method', ['sum', 'binary', 'min', 'max', 'sample'])
def test_none_one_and_two_candidates(method):
    samples = 1 if method == 'sample' else None
    assert aggregate(np.empty((0, 0)), method, samples).tolist() == []
    assert aggregate([[NAN]], method, samples).tolist() == [0.0]
    expected = [1.0, 0.0] if method == 'binary' else [0.75, 0.25]
    assert aggregate([[NAN, 0.75], [0.25, NAN]], method, samples).tolist() == expected


def test_min_and_max_of_logit_differences_do_not_saturate():
    differences = np.array([[NAN, 60.0, 50.0], [80.0, NAN, 70.0], [-90.0, 65.0, NAN]])
    assert (
        np.exp(log_probabilities(differences))[0, 1]
        == np.exp(log_probabilities(differences))[1, 0]
        == 1.0
    )
    assert aggregate_differences(differences, 'max').argsort().tolist() == [0, 2, 1]
    assert aggregate_differences(differences, 'min').argsort().tolist() == [2, 0, 1]
    plain = np.array([[NAN, 0.3, -1.0], [2.0, NAN, 0.1], [0.0, 0.2, NAN]])
    probabilities = np.exp(log_probabilities(plain))
    for method in ('sum', 'binary'):
        np.testing.assert_allclose(
            aggregate_differences(plain, method), aggregate(probabilities, method)
        )
    for method in ('min', 'max'):
        expected = np.log(aggregate(probabilities, method))
        np.testing.assert_allclose(aggregate_differences(plain, method), expected)


def test_log_probabilities_grow_strictly_with_the_logit_difference():
    logits = np.zeros((2001, 2), dtype=np.float32)
    logits[:, 1] = np.linspace(-100, 100, 2001)
    differences = logit_differences(logits)
    assert (np.diff(log_probabilities(differences)) > 0).all()
    np.testing.assert_allclose(
        log_probabilities(np.array([0.0, 2.0])), [np.log(0.5), -0.126928011042972]
    )
    single = np.array([[1.5], [-2.0]], dtype=np.float32)
    assert logit_differences(single).tolist() == [1.5, -2.0]

"""Measures of probabilities, against answers by hand."""

import pytest

from pyserini_repbert.evaluate.calibration import (
    area_under_roc,
    brier_score,
    expected_calibration_error,
    reliability,
)


def test_brier_is_the_mean_squared_distance():
    assert brier_score([1.0, 0.5, 0.0], [True, True, True]) == pytest.approx((0 + 0.25 + 1) / 3)


def test_bins_hold_as_many_predictions_each():
    bins = reliability([0.9, 0.1, 0.2, 0.8], [True, False, True, True], n_bins=2)
    assert [(group.observed, group.n) for group in bins] == [(0.5, 2), (1.0, 2)]
    assert [group.predicted for group in bins] == pytest.approx([0.15, 0.85])


def test_the_error_is_weighted_by_the_size_of_bins():
    assert expected_calibration_error([0.25] * 4, [True, False, False, False]) == pytest.approx(
        (0.75 + 3 * 0.25) / 4
    )
    assert expected_calibration_error([1.0, 0.0], [True, False]) == 0


def test_auc_counts_ties_half():
    assert area_under_roc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == pytest.approx(0.875)
    assert area_under_roc([0.1, 0.9], [True, False]) == 0
    assert area_under_roc([0.1, 0.9], [True, True]) is None

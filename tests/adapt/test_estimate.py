"""The gain of an adaptation, by hand."""

import math

import numpy as np
import pytest

from pyserini_repbert.adapt.adaptation import Adaptation


def test_the_gain_is_over_the_best_that_needs_no_judgments():
    """Held out 0.5, 0.7, 0.9 against 0.4, 0.5, 0.9: gains 0.1, 0.2, 0, of which the mean is 0.1 and
    the standard error 0.1 / sqrt(3).
    """
    adaptation = Adaptation(
        query_map=np.zeros((2, 2), np.float32),
        weights=(0.6, 0.4),
        rerank_weight=None,
        n_topics=5,
        texts=('a', 'b', 'c'),
        untuned={'dense': np.array([0.1, 0.2, 0.3]), 'fused': np.array([0.4, 0.5, 0.9])},
        steps={'mapped': np.array([0.0, 0.0, 0.0]), 'and fused': np.array([0.5, 0.7, 0.9])},
    )
    estimate = adaptation.estimate()
    assert (estimate.baseline, estimate.topics, estimate.texts) == ('fused', 5, 3)
    assert estimate.untuned == pytest.approx(0.6)
    assert estimate.adapted == pytest.approx(0.7)
    assert estimate.gain == pytest.approx(0.1)
    assert estimate.standard_error == pytest.approx(0.1 / math.sqrt(3))
    # t = sqrt(3) with two degrees of freedom: p = 1 - t / sqrt(2 + t^2).
    assert estimate.p == pytest.approx(1 - math.sqrt(3) / math.sqrt(5))
    assert not estimate.is_convincing

"""The thresholds of an exact search, which a sample of the rows gives."""

import math

import numpy as np
import torch

from pyserini_repbert.search.exact import _estimate_thresholds


def test_a_sample_without_rows_has_no_threshold():
    assert _estimate_thresholds(torch.empty(2, 0), 0.1).tolist() == [-math.inf, -math.inf]


def test_somewhat_more_than_the_share_of_rows_reaches_a_threshold():
    random = np.random.default_rng(0)
    products = torch.from_numpy(random.standard_normal((3, 10_000), np.float32))
    thresholds = _estimate_thresholds(products, 0.01)
    reaching = (products >= thresholds[:, None]).sum(dim=1)
    assert all(100 < count < 200 for count in reaching.tolist())


def test_of_few_rows_all_reach_it():
    products = torch.tensor([[3.0, 1.0, 2.0]])
    assert _estimate_thresholds(products, 1.0).tolist() == [1.0]

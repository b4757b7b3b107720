"""Losses against values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyserini_repbert.train.losses import PairLoss, multi_label_margin, pair_loss, relevance_cross_entropy


def test_multi_label_margin_by_hand():
    """Row 1: positive 0 against 1 and 2: (1 - 0.5) + (1 + 1) over 3; row 2 has no positive: 0."""
    scores = torch.tensor([[1.0, 0.5, 2.0], [3.0, 1.0, 2.0]])
    positive = torch.tensor([[True, False, False], [False, False, False]])
    assert multi_label_margin(scores, positive).item() == pytest.approx((0.5 + 2.0) / 3 / 2)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10_000))
def test_multi_label_margin_is_equation_4(rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, columns, generator=generator)
    positive = torch.rand(rows, columns, generator=generator) < 0.4
    total = 0.0
    for s, p in zip(scores.tolist(), positive.tolist(), strict=True):
        pairs = [(i, j) for i in range(columns) for j in range(columns) if p[i] and not p[j]]
        total += sum(max(0.0, 1 - (s[i] - s[j])) for i, j in pairs) / columns
    assert multi_label_margin(scores, positive).item() == pytest.approx(total / rows, abs=1e-5)


def test_cross_entropy_of_two_logits_and_of_log_odds():
    """p(relevant) = 0.75 for a relevant input, 0.5 for another one."""
    logits = torch.tensor([[0.0, math.log(3)], [1.0, 1.0]])
    expected = (-math.log(0.75) - math.log(0.5)) / 2
    assert relevance_cross_entropy(logits, torch.tensor([1, 0])).item() == pytest.approx(expected)
    odds = (logits[:, 1] - logits[:, 0])[:, None]
    assert relevance_cross_entropy(odds, torch.tensor([True, False])).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ('kind', 'expected'),
    [
        (PairLoss.CROSS_ENTROPY, (-math.log(0.75) - math.log(0.5)) / 2),
        (PairLoss.ONE_MINUS_SOFTMAX, (0.25 + 0.5) / 2),
        (PairLoss.HINGE, (0.0 + 1.0) / 2),
    ],
)
def test_pair_losses_by_hand(kind, expected):
    positive, negative = torch.tensor([math.log(3), 0.2]), torch.tensor([0.0, 0.2])
    if kind == PairLoss.HINGE:
        positive = torch.tensor([5.0, 0.2])
    assert pair_loss(positive, negative, kind).item() == pytest.approx(expected, abs=1e-6)


def test_losses_of_half_precision_are_single():
    scores = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert pair_loss(scores, scores, 'hinge').dtype == torch.float32
    assert multi_label_margin(scores[None], torch.tensor([[True, False]])).dtype == torch.float32

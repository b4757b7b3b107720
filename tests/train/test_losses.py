"""Losses against values computed by hand."""

import math

import pytest
import torch

from pyserini_repbert.tasks.losses import PairLoss, pair_loss, relevance_cross_entropy


def test_cross_entropy_of_two_logits():
    """p(relevant) = 0.75 for a relevant input, 0.5 for another one."""
    logits = torch.tensor([[0.0, math.log(3)], [1.0, 1.0]])
    expected = (-math.log(0.75) - math.log(0.5)) / 2
    assert relevance_cross_entropy(logits, torch.tensor([1, 0])).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ('kind', 'expected'),
    [
        (PairLoss.CROSS_ENTROPY, (-math.log(0.75) - math.log(0.5)) / 2),
        (PairLoss.ONE_MINUS_SOFTMAX, (0.25 + 0.5) / 2),
        (PairLoss.HINGE, (0.0 + 1.0) / 2),
    ],
)
def test_pair_losses_by_hand(kind, expected):
    positive = torch.tensor([math.log(3), 0.2])
    negative = torch.tensor([0.0, 0.2])
    if kind == PairLoss.HINGE:
        positive = torch.tensor([5.0, 0.2])
    assert pair_loss(positive, negative, kind).item() == pytest.approx(expected, abs=1e-6)

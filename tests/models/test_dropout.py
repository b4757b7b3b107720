"""Dropout of attention, in the products that training takes on a CPU."""

import torch

from pyserini_repbert.models.attention import _plain_attention


def test_dropout_drops():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 4)
    whole = _plain_attention(q, k, v, None, 0.0)
    torch.testing.assert_close(whole, _plain_attention(q, k, v, None, 0.0))
    dropped = _plain_attention(q, k, v, None, 0.5)
    assert not torch.allclose(whole, dropped)
    # Each weight is dropped or doubled, so that the mean over many draws is that of the whole.
    draws = [_plain_attention(q, k, v, None, 0.5) for _ in range(4000)]
    torch.testing.assert_close(torch.stack(draws).mean(dim=0), whole, atol=0.15, rtol=0)

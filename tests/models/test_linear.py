"""Linear layers by oneDNN equal PyTorch's own, whatever the shape; gradients go PyTorch's way."""

import pytest
import torch
from torch.nn import functional

from pyserini_repbert.models import linear as module

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, '_linear_pointwise'), reason='this PyTorch has no such operator'
)


@pytest.fixture(autouse=True)
def _by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, '_onednn_is_faster', lambda: True)


@pytest.mark.parametrize('shape', [(1, 48), (7, 48), (3, 5, 48), (0, 48)])
@pytest.mark.parametrize('biased', [True, False])
def test_values(shape: tuple[int, ...], biased: bool) -> None:
    x = torch.randn(shape)
    weight = torch.randn(32, 48)
    bias = torch.randn(32) if biased else None
    with torch.inference_mode():
        torch.testing.assert_close(
            module.linear(x, weight, bias), functional.linear(x, weight, bias)
        )


def test_strided_inputs() -> None:
    hidden = torch.randn(4, 9, 48)
    layer = module.Linear(48, 32)
    with torch.no_grad():
        torch.testing.assert_close(
            layer(hidden[:, :1]), functional.linear(hidden, layer.weight, layer.bias)[:, :1]
        )


def test_gradients() -> None:
    layer = module.Linear(48, 32)
    layer(torch.randn(2, 48)).sum().backward()
    torch.testing.assert_close(layer.bias.grad, torch.full((32,), 2.0))

"""Linear layers.

In float32, AMD's CPUs with AVX-512 compute them by oneDNN, in half of the time of MKL's products
(the command is in benchmarks/RESULTS.md).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Linear):
    """`nn.Linear`, by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    """x W' + b: (…, m) from x (…, n), weight (m, n) and bias (m,); with `gelu`, that function of
    it.
    """
    if _runs_by_onednn(x, weight) and _onednn_is_faster():
        activation = 'gelu' if gelu else 'none'
        operator: Any = torch.ops.mkldnn._linear_pointwise
        result: Tensor = operator(x, weight, bias, activation, [], 'none')
        return result
    product = functional.linear(x, weight, bias)
    if gelu:
        return functional.gelu(product)
    return product


def _runs_by_onednn(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN's operator takes these: float32 on a CPU, not learning, not compiled."""
    if x.device.type != 'cpu' or not x.dtype == weight.dtype == torch.float32 or not x.numel():
        return False
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return False
    return not torch.compiler.is_compiling()


@cache
def _onednn_is_faster() -> bool:
    """Whether this is an AMD with AVX-512, and PyTorch has the operator (it has no public name)."""
    cpu: dict[str, Any] = getattr(torch.cpu, 'get_capabilities', dict)()
    operator = getattr(torch.ops.mkldnn, '_linear_pointwise', None)
    return bool(operator and cpu.get('avx512_f') and 'AMD' in cpu.get('cpu_name', ''))

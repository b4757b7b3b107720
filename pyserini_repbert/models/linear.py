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
    on_cpu = x.dtype == weight.dtype == torch.float32 and x.device.type == 'cpu' and x.numel() > 0
    learns = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    if on_cpu and _onednn_is_faster() and not learns and not torch.compiler.is_compiling():
        activation = 'gelu' if gelu else 'none'
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], 'none')  # type: ignore[no-any-return]
    product = functional.linear(x, weight, bias)
    return functional.gelu(product) if gelu else product


@cache
def _onednn_is_faster() -> bool:
    """Whether this is an AMD with AVX-512, and PyTorch has the operator (it has no public name)."""
    cpu: dict[str, Any] = getattr(torch.cpu, 'get_capabilities', dict)()
    operator = getattr(torch.ops.mkldnn, '_linear_pointwise', None)
    return bool(operator and cpu.get('avx512_f') and 'AMD' in cpu.get('cpu_name', ''))

"""How fast this machine's CPU multiplies in bfloat16, beside float32: measured, not believed.

Processors say that they have instructions for bfloat16. On some, products in bfloat16 are slower
all the same.
"""

from __future__ import annotations

from pyserini_repbert.models.timing import Contenders, best_times, layer_products

# Tokens of a batch.
_ROWS = 512


def bfloat16_speed() -> float:
    """How many times as fast as in float32 the CPU multiplies matrices of models' sizes in
    bfloat16.
    """
    times = best_times('bfloat16', _contenders)
    return times['float32'] / times['bfloat16']


def _contenders() -> Contenders:
    import torch

    return {
        'float32': layer_products(_ROWS, torch.float32),
        'bfloat16': layer_products(_ROWS, torch.bfloat16),
    }

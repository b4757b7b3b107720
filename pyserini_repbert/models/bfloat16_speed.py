"""How fast this machine's CPU multiplies in bfloat16, compared with float32.

It is measured. Some processors have instructions for bfloat16, and are still slower in it.
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

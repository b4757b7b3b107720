"""What follows the pooling of a bi-encoder, as its folder says. Nothing here needs PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Activations that are supported, by their names in the files of sentence-transformers.
ACTIVATION_NAMES = (
    'torch.nn.modules.linear.Identity',
    'torch.nn.modules.activation.GELU',
    'torch.nn.modules.activation.ReLU',
    'torch.nn.modules.activation.SiLU',
    'torch.nn.modules.activation.Sigmoid',
    'torch.nn.modules.activation.Tanh',
)


@dataclass(frozen=True)
class DenseSizes:
    """A dense layer: its sizes, the name of its activation, and whether it has a bias."""

    size_in: int
    size_out: int
    activation: str
    bias: bool


@dataclass(frozen=True)
class Kept:
    """How many values of a vector are kept, from the first on."""

    size: int

    def of(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The first values of a vector."""
        return vector[: self.size]


# What follows pooling: a dense layer, a truncation, or None for a scaling to length 1.
LayerSizes = DenseSizes | Kept | None

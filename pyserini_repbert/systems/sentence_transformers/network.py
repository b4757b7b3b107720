"""The network of a bi-encoder of sentence-transformers: a BERT, pooling, and what follows it.

Nils Reimers and Iryna Gurevych: Sentence-BERT, 2019, section 3. https://arxiv.org/abs/1908.10084
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.pooling import POOLINGS
from pyserini_repbert.systems.sentence_transformers.layers import DenseSizes, Kept, LayerSizes

# By their names in the files of sentence-transformers.
ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    'torch.nn.modules.linear.Identity': nn.Identity,
    'torch.nn.modules.activation.GELU': nn.GELU,
    'torch.nn.modules.activation.ReLU': nn.ReLU,
    'torch.nn.modules.activation.SiLU': nn.SiLU,
    'torch.nn.modules.activation.Sigmoid': nn.Sigmoid,
    'torch.nn.modules.activation.Tanh': nn.Tanh,
}


class Dense(nn.Module):
    """A linear layer and its activation, in float32; names as in sentence-transformers."""

    def __init__(self, sizes: DenseSizes) -> None:
        super().__init__()
        self.linear = nn.Linear(sizes.size_in, sizes.size_out, bias=sizes.bias)
        self.activation = ACTIVATIONS[sizes.activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        return self.activation(self.linear(vectors))  # type: ignore[no-any-return]


class Normalize(nn.Module):
    """Vectors scaled to length 1."""

    def forward(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors, dim=1)


class Truncate(nn.Module):
    """The first values of vectors alone (Matryoshka: Kusupati et al. 2022)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors[:, : self.size]


def _layer(sizes: LayerSizes) -> nn.Module:
    if sizes is None:
        return Normalize()
    if isinstance(sizes, Kept):
        return Truncate(sizes.size)
    return Dense(sizes)


class SentenceBert(nn.Module):
    """The vector of a text, float32 (n, d).

    Parameters
    ----------
    config : the sizes of its BERT
    poolings : names in `POOLINGS`; their vectors are joined
    layers : what follows, in its order
    """

    def __init__(
        self, config: BertConfig, poolings: Sequence[str], layers: Sequence[LayerSizes]
    ) -> None:
        super().__init__()
        self.bert = Bert(config)
        self.poolings = tuple(poolings)
        self.layers = nn.ModuleList(_layer(sizes) for sizes in layers)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Takes the parameters of `Bert.forward`, and raises its errors."""
        if self.poolings == ('cls',):
            hidden = self.bert.first_token(input_ids, token_type_ids, attention_mask).float()
        else:
            hidden = self.bert(input_ids, token_type_ids, attention_mask).float()
        pooled = [POOLINGS[name](hidden, attention_mask) for name in self.poolings]
        vectors = torch.cat(pooled, dim=1)
        for layer in self.layers:
            vectors = layer(vectors)
        return vectors

    def to_device(self, device: torch.device, dtype: torch.dtype) -> SentenceBert:
        """Move to `device`; the BERT becomes `dtype`, what follows stays in float32."""
        self.to(device)
        self.bert.to(dtype=dtype)
        return self

"""The network of late interaction: a BERT, and layers over the vector of each token.

Omar Khattab and Matei Zaharia: ColBERT, 2020, section 3.2. https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.sentence_transformers.layers import DenseSizes
from pyserini_repbert.systems.sentence_transformers.network import Dense, Normalize


class TokenBert(nn.Module):
    """The vectors of tokens, float32 (tokens, d), text after text (ColBERT eq. 1 and 2).

    Parameters
    ----------
    config : the sizes of its BERT
    layers : over the vector of each token: a dense layer, or None for a scaling to length 1
    """

    def __init__(self, config: BertConfig, layers: Sequence[DenseSizes | None]) -> None:
        super().__init__()
        self.bert = Bert(config)
        self.layers = nn.ModuleList()
        for sizes in layers:
            self.layers.append(Normalize() if sizes is None else Dense(sizes))

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attended: Tensor | None,
        scored: Tensor,
        computes_masked: bool = False,
    ) -> Tensor:
        """The vectors of the scored tokens.

        Parameters
        ----------
        input_ids, token_type_ids : int64 (n, length)
        attended : bool (n, length), the tokens that others attend to; None: all
        scored : bool (n, length), the tokens whose vectors are wanted
        computes_masked : whether some of these are not attended to
        """
        hidden = self.bert(input_ids, token_type_ids, attended, computes_masked)
        vectors = hidden[scored].float()
        for layer in self.layers:
            vectors = layer(vectors)
        return vectors  # type: ignore[no-any-return]

    def padded_vectors(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The vectors of all tokens, padding included, float32 (n, length, d).

        Takes the parameters of `Bert.forward`.
        """
        hidden = self.bert(input_ids, token_type_ids, attention_mask).float()
        vectors = hidden.flatten(0, 1)
        for layer in self.layers:
            vectors = layer(vectors)
        return vectors.unflatten(0, hidden.shape[:2])  # type: ignore[no-any-return]

    def to_device(self, device: torch.device, dtype: torch.dtype) -> TokenBert:
        """Move to `device`; the BERT becomes `dtype`, what follows stays in float32."""
        self.to(device)
        self.bert.to(dtype=dtype)
        return self

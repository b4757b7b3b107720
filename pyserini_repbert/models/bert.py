"""BERT (Devlin et al., 2019), the body of every model here.

Modules are named as in Hugging Face's implementation, so that its checkpoints load and PEFT finds its layers. Our own
implementation starts without importing transformers, returns any hidden layer, and skips work that ranking does not
need: attention runs without a mask if a batch has no padding.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.bert_layer import Embeddings, Layer


class _Encoder(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Pooler(nn.Module):
    """tanh(dense(h_CLS)): (n, h) from hidden states (n, length, h)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.tanh(self.dense(hidden[:, 0]))


class Bert(nn.Module):
    """The BERT body.

    Parameters
    ----------
    config : its sizes
    pooler : whether to add BERT's pooler, which cross-encoders need
    """

    def __init__(self, config: BertConfig, pooler: bool = False) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = _Encoder(config)
        self.pooler = Pooler(config) if pooler else None
        self.apply(self._initialise)

    def _initialise(self, module: nn.Module) -> None:
        """BERT's initialisation: normal weights, zero biases."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The last layer's output.

        Raises InputError for sequences longer than the positions of this BERT.

        Parameters
        ----------
        input_ids, token_type_ids : int64 (n, length)
        attention_mask : bool (n, length), True where there is a token; None where no sequence is padded

        Returns
        -------
        (n, length, h), of the weights' dtype
        """
        hidden = input_ids
        for hidden in self.each_layer(input_ids, token_type_ids, attention_mask):  # noqa: B007
            pass
        return hidden

    def first_token(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The last layer's output at [CLS], (n, 1, h): equal to `forward(…)[:, :1]`, but faster.

        The last layer is computed for [CLS] alone, which saves a tenth of the work of a BERT with six layers.
        """
        hidden = input_ids
        for hidden in self.each_layer(input_ids, token_type_ids, attention_mask, first_only=True):  # noqa: B007
            pass
        return hidden[:, :1]

    def each_layer(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        first_only: bool = False,
    ) -> Iterator[Tensor]:
        """The embedding output, then every layer's output, one at a time: (n, length, h) each.

        Parameters
        ----------
        position_ids : int64 (n, length), for sequences whose positions do not simply count from 0
        first_only : compute the last layer for the first position alone: (n, 1, h)

        Parameters not listed, and errors, are those of `forward`.
        """
        if input_ids.shape[1] > self.config.max_position_embeddings:
            raise InputError(
                f'a sequence of {input_ids.shape[1]} tokens was given, this BERT has '
                f'{self.config.max_position_embeddings} positions: lower the maximum length'
            )
        mask = None if attention_mask is None else attention_mask[:, None, None, :].to(torch.bool)
        hidden = self.embeddings(input_ids, token_type_ids, position_ids)
        yield hidden
        last = len(self.encoder.layer) - 1
        for number, layer in enumerate(self.encoder.layer):
            hidden = layer(hidden, mask, first_only and number == last)
            yield hidden

"""BERT with its two pre-training heads (Devlin et al., 2019, section 3.1): a base for every
system.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert import ACTIVATIONS, Bert, Pooler
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.linear import Linear


class _Transform(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, hidden: Tensor) -> Tensor:
        return self.LayerNorm(self.activation(self.dense(hidden)))  # type: ignore[no-any-return, no-untyped-call]


class MaskedLmPredictions(nn.Module):
    """BERT's masked-LM head without its decoder, which is the word-embedding matrix."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = _Transform(config)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))


class _Heads(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.predictions = MaskedLmPredictions(config)
        self.seq_relationship = nn.Linear(config.hidden_size, 2)


class PreTrainedBert(nn.Module):
    """Masked-LM and next-sentence prediction; names as in BertForPreTraining.

    The decoder is the word embeddings.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.bert = Bert(config, pooler=True)
        self.cls = _Heads(config)
        for linear in (self.cls.predictions.transform.dense, self.cls.seq_relationship):
            nn.init.normal_(linear.weight, std=config.initializer_range)
            nn.init.zeros_(linear.bias)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None,
        positions: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The logits of the wordpiece at each masked position, float32 (m, |V|), and of the next
        sentence, (n, 2).

        Index 0 of the second output is "the second text follows the first", as in BERT.

        Parameters
        ----------
        input_ids, token_type_ids, attention_mask : as in `Bert.forward`
        positions : int64 (m,), the masked positions in the flattened (n · length) input
        """
        hidden = self.bert(input_ids, token_type_ids, attention_mask)
        masked = self.cls.predictions.transform(hidden.flatten(0, 1)[positions])
        words = functional.linear(
            masked, self.bert.embeddings.word_embeddings.weight, self.cls.predictions.bias
        )
        pooled = cast(Pooler, self.bert.pooler)(hidden)
        return words.float(), self.cls.seq_relationship(pooled).float()

"""BERT (Devlin et al., 2019), the body of every model here.

The modules carry the names of Hugging Face's implementation, so that its checkpoints load and PEFT finds its layers.
It is our own to start without importing transformers, to return any hidden layer, and to skip work that ranking does
not need: attention runs without a mask if a batch has no padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_layer import ACTIVATIONS, Embeddings, Layer

LARGEST_SIZE = 2**31


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, named as in Hugging Face's config.json."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = 'gelu'
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BertConfig:
        """From the content of a config.json.

        Raises InputError for a model that is not a BERT of the original kind, and values that no BERT has.
        """
        if values.get('model_type', 'bert') != 'bert':
            raise InputError(f"model_type '{values['model_type']}' is not supported: a BERT checkpoint is expected")
        if values.get('position_embedding_type', 'absolute') != 'absolute':
            raise InputError(f"position_embedding_type '{values['position_embedding_type']}' is not supported")
        config = cls(**{field.name: values[field.name] for field in fields(cls) if values.get(field.name) is not None})
        config._check_values()
        if config.hidden_act not in ACTIVATIONS:
            raise InputError(f"hidden_act '{config.hidden_act}' is not supported: one of {', '.join(ACTIVATIONS)}")
        if config.hidden_size % config.num_attention_heads:
            raise InputError(f'hidden_size {config.hidden_size} is no multiple of {config.num_attention_heads} heads')
        return config

    def _check_values(self) -> None:
        for own in fields(self):
            value = getattr(self, own.name)
            if own.type == 'str':
                right, expected = isinstance(value, str), 'a text'
            elif own.type == 'int':
                least = 0 if own.name == 'pad_token_id' else 1
                right, expected = type(value) is int and least <= value < LARGEST_SIZE, f'a whole number from {least}'
            else:
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                right, expected = number and 0 <= value < 1, 'a number from 0 to below 1'
            if not right:
                raise InputError(f'{own.name} is {value!r}, expected {expected}')
        if self.pad_token_id >= self.vocab_size:
            raise InputError(f'pad_token_id is {self.pad_token_id}, the vocabulary has {self.vocab_size} wordpieces')


class _Encoder(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Pooler(nn.Module):
    """tanh(dense([CLS])): (n, h) from (n, length, h)."""

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
    pooler : whether it has BERT's pooler, which cross-encoders read
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

        The last layer skips the positions that nothing reads: a tenth of the work of six layers.
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

        `position_ids`, int64 (n, length), is for sequences whose positions do not simply count from 0. With
        `first_only`, the last layer is computed for the first position alone: (n, 1, h).
        """
        if input_ids.shape[1] > self.config.max_position_embeddings:
            raise InputError(
                f'a sequence of {input_ids.shape[1]} tokens was given, this BERT has '
                f'{self.config.max_position_embeddings} positions: lower the maximum length'
            )
        bias = None if attention_mask is None else attention_mask[:, None, None, :].to(torch.bool)
        hidden = self.embeddings(input_ids, token_type_ids, position_ids)
        yield hidden
        last = len(self.encoder.layer) - 1
        for number, layer in enumerate(self.encoder.layer):
            hidden = layer(hidden, bias, first_only and number == last)
            yield hidden

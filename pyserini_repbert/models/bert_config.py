"""The configuration of a BERT, and the activations that are supported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch.nn import functional

from pyserini_repbert.errors import InputError

ACTIVATIONS = {
    'gelu': functional.gelu,
    'gelu_new': lambda x: functional.gelu(x, approximate='tanh'),
    'gelu_pytorch_tanh': lambda x: functional.gelu(x, approximate='tanh'),
    'relu': functional.relu,
}
_LARGEST = 2**31  # sizes are below


@dataclass(frozen=True)
class BertConfig:
    """The sizes, dropout rates and other constants of a BERT, named as in Hugging Face's config.json."""

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

        Raises InputError for another type of model, position embeddings or an activation that are not supported, or
        values that no BERT has.
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
                right, expected = type(value) is int and least <= value < _LARGEST, f'a whole number from {least}'
            else:
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                right, expected = number and 0 <= value < 1, 'a number from 0 to below 1'
            if not right:
                raise InputError(f'{own.name} is {value!r}, expected {expected}')
        if self.pad_token_id >= self.vocab_size:
            raise InputError(f'pad_token_id is {self.pad_token_id}, the vocabulary has {self.vocab_size} wordpieces')

"""The configuration of a BERT: its values, the activations that are supported, and whether it fits the weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torch.nn import functional

from pyserini_repbert.errors import DamagedFileError, InputError

ACTIVATIONS = {
    'gelu': functional.gelu,
    'gelu_new': lambda x: functional.gelu(x, approximate='tanh'),
    'gelu_pytorch_tanh': lambda x: functional.gelu(x, approximate='tanh'),
    'relu': functional.relu,
}
LARGEST_LIMIT = 1_000_000  # wordpieces of a text
_LAYER = re.compile(r'bert\.encoder\.layer\.(\d+)\.')
_TEXTS = ('system', 'layout', 'variant', 'architecture')
_FLAGS = ('joint', 'pad_query', 'normalised')
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
        """From the content of a config.json. Raises InputError for what is not supported, or what no BERT has."""
        if values.get('model_type', 'bert') != 'bert':
            raise InputError(f"model_type '{values['model_type']}' is not supported: a BERT checkpoint is expected")
        if values.get('position_embedding_type', 'absolute') != 'absolute':
            raise InputError(f"position_embedding_type '{values['position_embedding_type']}' is not supported")
        config = cls(**{field.name: values[field.name] for field in fields(cls) if values.get(field.name) is not None})
        for field in fields(cls):
            value = getattr(config, field.name)
            if field.type == 'str':
                right, expected = isinstance(value, str), 'a text'
            elif field.type == 'int':
                least = 0 if field.name == 'pad_token_id' else 1
                right, expected = type(value) is int and least <= value < _LARGEST, f'a whole number from {least}'
            else:
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                right, expected = number and 0 <= value < 1, 'a number from 0 to below 1'
            if not right:
                raise InputError(f'{field.name} is {value!r}, expected {expected}')
        if config.pad_token_id >= config.vocab_size:
            raise InputError(
                f'pad_token_id is {config.pad_token_id}, the vocabulary has {config.vocab_size} wordpieces'
            )
        if config.hidden_act not in ACTIVATIONS:
            raise InputError(f"hidden_act '{config.hidden_act}' is not supported: one of {', '.join(ACTIVATIONS)}")
        if config.hidden_size % config.num_attention_heads:
            raise InputError(f'hidden_size {config.hidden_size} is no multiple of {config.num_attention_heads} heads')
        return config


def check_config(path: Path, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise DamagedFileError, naming the file `path`, unless it is the config.json of a BERT with these weights.

    `shapes` are those of the weights by name, the body as `bert.*`. Sizes that they do not tell are not compared.
    """
    try:
        check_ranking(config.get('ranking', {}))
        sizes = BertConfig.from_dict(config)
    except InputError as error:
        raise DamagedFileError(f'{path}: {error}') from error
    layers = [int(match[1]) for match in map(_LAYER.match, shapes) if match]
    weights_sizes: dict[str, int] = {'num_hidden_layers': max(layers) + 1} if layers else {}
    for weight, name in {
        'embeddings.word_embeddings': 'vocab_size',
        'embeddings.position_embeddings': 'max_position_embeddings',
        'embeddings.token_type_embeddings': 'type_vocab_size',
        'encoder.layer.0.intermediate.dense': 'intermediate_size',
    }.items():
        if len(shape := shapes.get(f'bert.{weight}.weight', ())) == 2:
            weights_sizes |= {name: shape[0], 'hidden_size': shape[1]}
    for name, size in weights_sizes.items():
        if getattr(sizes, name) != size:
            raise DamagedFileError(
                f'{path}: {name} is {getattr(sizes, name)}, the weights beside it have {size}: restore the file'
            )


def check_ranking(ranking: object) -> None:
    """Raise InputError for a `ranking` that is not an object, or has values that no system has."""
    if not isinstance(ranking, Mapping):
        raise InputError(f'ranking is {ranking!r}, an object was expected')
    for name, value in ranking.items():
        if name.startswith('max_') or name == 'k_max':
            if type(value) is not int or not 1 <= value <= LARGEST_LIMIT:
                raise InputError(f'ranking.{name} is {value!r}, a whole number from 1 to {LARGEST_LIMIT} was expected')
        elif name == 'doc_token_type' and value not in (0, 1):
            raise InputError(f'ranking.{name} is {value!r}, 0 or 1 was expected')
        elif name in _TEXTS and not isinstance(value, str):
            raise InputError(f'ranking.{name} is {value!r}, a text was expected')
        elif name in _FLAGS and not isinstance(value, bool):
            raise InputError(f'ranking.{name} is {value!r}, true or false was expected')

"""The configuration of a BERT: its values, the activations that are supported, and what
`ranking` may say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.errors import InputError

# Names in config.json of activations that are supported.
ACTIVATIONS = ('gelu', 'gelu_new', 'gelu_pytorch_tanh', 'relu')
# RoBERTa (Liu et al., 2019) and XLM-R compute as BERT does; only their positions begin elsewhere.
ROBERTA_TYPES = ('roberta', 'xlm-roberta')
_ROBERTA_PAD = 1
_Size = Annotated[int, Field(ge=1, lt=2**31)]
_Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
_Limit = Annotated[int, Field(ge=1, le=1_000_000)]  # wordpieces of a text


@dataclass(frozen=True, config=ConfigDict(strict=True, defer_build=True))
class BertConfig:
    """The sizes, dropout rates and other constants of a BERT, named as in Hugging Face's
    config.json.

    Static word vectors have no layer. `position_offset` is the position of a first token: 0 in
    BERT; in RoBERTa, the number after the id of padding. No config.json has it.
    """

    vocab_size: _Size = 30522
    hidden_size: _Size = 768
    num_hidden_layers: Annotated[int, Field(ge=0, le=1000)] = 12
    num_attention_heads: _Size = 12
    intermediate_size: _Size = 3072
    max_position_embeddings: _Size = 512
    type_vocab_size: _Size = 2
    hidden_act: str = 'gelu'
    hidden_dropout_prob: _Share = 0.1
    attention_probs_dropout_prob: _Share = 0.1
    layer_norm_eps: _Share = 1e-12
    initializer_range: _Share = 0.02
    pad_token_id: Annotated[int, Field(ge=0)] = 0
    position_offset: Annotated[int, Field(ge=0)] = 0

    @property
    def longest_input(self) -> int:
        """The most tokens that an input can have, special tokens included."""
        return self.max_position_embeddings - self.position_offset

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], takes_roberta: bool = False) -> BertConfig:
        """From the content of a config.json.

        Parameters
        ----------
        values : the content
        takes_roberta : whether it may describe a RoBERTa or an XLM-R

        Raises InputError for unsupported settings, and for settings that no BERT has.
        """
        model_type = values.get('model_type', 'bert')
        is_roberta = takes_roberta and model_type in ROBERTA_TYPES
        if model_type != 'bert' and not is_roberta:
            raise InputError(
                f"model_type '{model_type}' is not supported: a BERT checkpoint is expected"
            )
        if values.get('position_embedding_type', 'absolute') != 'absolute':
            raise InputError(
                f"position_embedding_type '{values['position_embedding_type']}' is not supported"
            )
        try:
            given = {
                field.name: values[field.name]
                for field in fields(cls)
                if values.get(field.name) is not None
            }
            given.pop('position_offset', None)
            if is_roberta:
                given.setdefault('pad_token_id', _ROBERTA_PAD)
                given['position_offset'] = int(given['pad_token_id']) + 1
            config = cls(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f'{first["loc"][0]} is {first["input"]!r}: {first["msg"]}') from error
        if config.pad_token_id >= config.vocab_size:
            raise InputError(
                f'pad_token_id is {config.pad_token_id}, but there are {config.vocab_size} '
                f'wordpieces'
            )
        if config.hidden_act not in ACTIVATIONS:
            raise InputError(
                f"hidden_act '{config.hidden_act}' is not supported: one of "
                f'{", ".join(ACTIVATIONS)}'
            )
        if config.hidden_size % config.num_attention_heads:
            raise InputError(
                f'hidden_size {config.hidden_size} is not a multiple of '
                f'{config.num_attention_heads} heads'
            )
        return config


class RankingObject(TypedDict, total=False):
    """The types of what a `ranking` object in a config.json may hold; each system reads some of
    it.
    """

    system: str
    variant: str
    layout: str
    architecture: str
    max_length: _Limit
    max_query_length: _Limit
    max_doc_length: _Limit
    dimension: _Limit
    k_max: _Limit
    joint: bool
    pad_query: bool
    static: bool

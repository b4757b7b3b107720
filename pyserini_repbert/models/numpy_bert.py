"""BERT in NumPy, for a few texts where PyTorch is not imported.

Importing PyTorch takes longer than all else that one question needs. `NumpyBert` computes what
`bert.Bert` computes (Devlin et al., 2019; RoBERTa and XLM-R, too), `POOLINGS` and `ACTIVATIONS`
have PyTorch's names, and results differ only by rounding. Texts are computed one
after the other, so nothing is padded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.tokenizer import ModelInputs

Array = NDArray[np.float32]
Shapes = dict[str, tuple[int, ...]]

_erf = np.frompyfunc(math.erf, 1, 1)
# No model uses it here, and checkpoints may have it.
_POOLER = 'bert.pooler.'
# As PyTorch scales a vector to length 1.
_SHORTEST = np.float32(1e-12)


def gelu(x: Array) -> Array:
    """x times the normal distribution's function of x (Hendrycks and Gimpel, 2016)."""
    errors: Array = _erf(x / np.float32(math.sqrt(2))).astype(np.float32)
    values: Array = x * np.float32(0.5) * (1 + errors)
    return values


def gelu_by_tanh(x: Array) -> Array:
    """`gelu`, approximated by tanh (Hendrycks and Gimpel, 2016, section 2)."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x**3)
    values: Array = x * np.float32(0.5) * (1 + np.tanh(inner))
    return values


def relu(x: Array) -> Array:
    """x if it is above 0, otherwise 0."""
    return np.maximum(x, np.float32(0))


# By their names in config.json.
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    'gelu': gelu,
    'gelu_new': gelu_by_tanh,
    'gelu_pytorch_tanh': gelu_by_tanh,
    'relu': relu,
}
# From the vectors of tokens, (length, h), to one of the text, (h,); by their names in files.
POOLINGS: Mapping[str, Callable[[Array], Array]] = {
    'cls': lambda hidden: hidden[0],
    'max': lambda hidden: hidden.max(axis=0),  # type: ignore[no-any-return]
    'mean': lambda hidden: hidden.mean(axis=0),  # type: ignore[no-any-return]
    'mean_sqrt_len_tokens': lambda hidden: hidden.mean(axis=0) * np.float32(math.sqrt(len(hidden))),
}


def normalized(vector: Array) -> Array:
    """A vector scaled to length 1; one of zeros stays."""
    scaled: Array = vector / np.maximum(np.linalg.norm(vector), _SHORTEST)
    return scaled


def body_shapes(config: BertConfig) -> Shapes:
    """The shape of each weight of a BERT without its pooler, by the names of `bert.Bert`."""
    size = config.hidden_size
    embeddings = 'bert.embeddings'
    shapes: Shapes = {
        f'{embeddings}.word_embeddings.weight': (config.vocab_size, size),
        f'{embeddings}.position_embeddings.weight': (config.max_position_embeddings, size),
        f'{embeddings}.token_type_embeddings.weight': (config.type_vocab_size, size),
        **_norm_shapes(f'{embeddings}.LayerNorm', size),
    }
    for number in range(config.num_hidden_layers):
        layer = f'bert.encoder.layer.{number}'
        for part in ('query', 'key', 'value'):
            shapes |= _linear_shapes(f'{layer}.attention.self.{part}', size, size)
        shapes |= _linear_shapes(f'{layer}.attention.output.dense', size, size)
        shapes |= _norm_shapes(f'{layer}.attention.output.LayerNorm', size)
        shapes |= _linear_shapes(f'{layer}.intermediate.dense', size, config.intermediate_size)
        shapes |= _linear_shapes(f'{layer}.output.dense', config.intermediate_size, size)
        shapes |= _norm_shapes(f'{layer}.output.LayerNorm', size)
    return shapes


def _linear_shapes(name: str, size_in: int, size_out: int) -> Shapes:
    return {f'{name}.weight': (size_out, size_in), f'{name}.bias': (size_out,)}


def _norm_shapes(name: str, size: int) -> Shapes:
    return {f'{name}.weight': (size,), f'{name}.bias': (size,)}


class NumpyBert:
    """The BERT body, for one text at a time.

    Parameters
    ----------
    config : its sizes
    weights : float32, with the names and shapes of `body_shapes`; further ones are not read
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, Array]) -> None:
        self._config = config
        self._weights = weights
        self._activation = ACTIVATIONS[config.hidden_act]

    def hidden_states(self, input_ids: NDArray[np.int32], token_type: int) -> Array:
        """The last layer's output, (length, h).

        Parameters
        ----------
        input_ids : of a text, special tokens included, (length,)
        token_type : of all tokens

        Raises InputError for a text longer than the positions of this BERT.
        """
        if len(input_ids) > self._config.longest_input:
            raise InputError(
                f'a sequence of {len(input_ids)} tokens was given, this BERT has '
                f'{self._config.longest_input} positions: lower the maximum length'
            )
        hidden = self._embeddings(input_ids, token_type)
        for number in range(self._config.num_hidden_layers):
            layer = f'bert.encoder.layer.{number}'
            context = self._attention(hidden, layer)
            attended = self._linear(context, f'{layer}.attention.output.dense')
            hidden = self._norm(attended + hidden, f'{layer}.attention.output.LayerNorm')
            inner = self._activation(self._linear(hidden, f'{layer}.intermediate.dense'))
            output = self._linear(inner, f'{layer}.output.dense')
            hidden = self._norm(output + hidden, f'{layer}.output.LayerNorm')
        return hidden

    def _embeddings(self, input_ids: NDArray[np.int32], token_type: int) -> Array:
        positions = np.arange(len(input_ids))
        offset = self._config.position_offset
        if offset:
            is_token = input_ids != self._config.pad_token_id
            positions = is_token.cumsum() * is_token + offset - 1
        stem = 'bert.embeddings'
        summed = (
            self._weights[f'{stem}.word_embeddings.weight'][input_ids]
            + self._weights[f'{stem}.token_type_embeddings.weight'][token_type]
            + self._weights[f'{stem}.position_embeddings.weight'][positions]
        )
        return self._norm(summed, f'{stem}.LayerNorm')

    def _attention(self, hidden: Array, layer: str) -> Array:
        """What each token attends to, (length, h)."""
        queries = self._heads(hidden, f'{layer}.attention.self.query')
        keys = self._heads(hidden, f'{layer}.attention.self.key')
        values = self._heads(hidden, f'{layer}.attention.self.value')
        logits = queries @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(queries.shape[-1]))
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ values).transpose(1, 0, 2).reshape(hidden.shape)  # type: ignore[no-any-return]

    def _heads(self, hidden: Array, name: str) -> Array:
        """A linear layer's output for each head, (heads, length, h / heads)."""
        output = self._linear(hidden, name)
        heads = output.reshape(len(hidden), self._config.num_attention_heads, -1)
        return heads.transpose(1, 0, 2)

    def _linear(self, x: Array, name: str) -> Array:
        values: Array = x @ self._weights[f'{name}.weight'].T + self._weights[f'{name}.bias']
        return values

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + np.float32(self._config.layer_norm_eps))
        values: Array = scaled * self._weights[f'{name}.weight'] + self._weights[f'{name}.bias']
        return values


class NumpyTextNetwork:
    """The vector of a text: a BERT, pooling, and what follows it.

    Parameters
    ----------
    config : the sizes of its BERT
    weights : float32, by the names of `body_shapes`
    poolings : names in `POOLINGS`; their vectors are joined
    layers : what follows, in its order
    """

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, Array],
        poolings: Sequence[str],
        layers: Sequence[Callable[[Array], Array]] = (),
    ) -> None:
        self._bert = NumpyBert(config, weights)
        self._poolings = [POOLINGS[name] for name in poolings]
        self._layers = tuple(layers)

    @classmethod
    def fitting(
        cls,
        config: BertConfig,
        weights: Mapping[str, Array],
        poolings: Sequence[str],
        layers: Sequence[Callable[[Array], Array]] = (),
    ) -> Self | None:
        """The network with these weights; None if they do not exactly match such a BERT.

        Parameters
        ----------
        config : of the BERT
        weights : float arrays by their names in a checkpoint; a pooler among them is not used
        poolings : names in `POOLINGS`; their vectors are joined
        layers : functions from vectors to vectors, behind the poolings
        """
        used = {name: value for name, value in weights.items() if not name.startswith(_POOLER)}
        if {name: value.shape for name, value in used.items()} != body_shapes(config):
            return None
        return cls(config, used, poolings, layers)

    def vectors(self, inputs: ModelInputs) -> Array:
        """The vectors of inputs, float32 (n, d), in their order.

        Raises InputError for an input longer than the positions of this BERT.
        """
        ends = np.cumsum(inputs.lengths)
        vectors = []
        for first, end in zip((ends - inputs.lengths).tolist(), ends.tolist(), strict=True):
            ids = inputs.input_ids[first:end]
            vectors.append(self._vector(ids, int(inputs.token_type_ids[first])))
        return np.stack(vectors)

    def _vector(self, input_ids: NDArray[np.int32], token_type: int) -> Array:
        hidden = self._bert.hidden_states(input_ids, token_type)
        vector: Array = np.concatenate([pooling(hidden) for pooling in self._poolings])
        for layer in self._layers:
            vector = layer(vector)
        return vector

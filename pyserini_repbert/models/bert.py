"""BERT (Devlin et al., 2019), the body of every model here; RoBERTa and XLM-R, too.

Modules are named as in Hugging Face's implementation, so that its checkpoints load and PEFT finds
its layers. Our implementation starts without importing transformers, returns any hidden layer, and
skips work that ranking does not need: attention runs without a mask if a batch has no padding, and
layers avoid computing padding (`attention`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.attention import (
    PackedBatch,
    PackedCpuBatch,
    PaddedBatch,
    can_pack,
    can_pack_on_cpu,
)
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.linear import Linear, linear
from pyserini_repbert.models.precision import on_device

# By their names in config.json.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    'gelu': functional.gelu,
    'gelu_new': partial(functional.gelu, approximate='tanh'),
    'gelu_pytorch_tanh': partial(functional.gelu, approximate='tanh'),
    'relu': functional.relu,
}


class _Encoder(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Pooler(nn.Module):
    """tanh(dense(h_CLS)): (n, h) from hidden states (n, length, h)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.tanh(self.dense(hidden[:, 0]))


class Bert(nn.Module):
    """The BERT body; `pooler` adds BERT's pooler, which cross-encoders need."""

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

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None = None,
        computes_masked: bool = False,
    ) -> Tensor:
        """The last layer's output, (n, length, h), of the weights' dtype.

        `input_ids` and `token_type_ids` are int64 (n, length); `attention_mask`, bool (n, length),
        best in the host's memory, is True if there is a token, and None if no sequence is
        padded. With `computes_masked`, what no token attends to has an output, too, as the query
        expansion of ColBERT needs; otherwise it may be 0 there. Raises InputError for sequences
        longer than the positions of this BERT.
        """
        batch: PaddedBatch | PackedBatch
        if computes_masked and attention_mask is not None:
            batch = PaddedBatch(on_device(attention_mask, input_ids.device), dropout=None)
        else:
            batch = self._batch(input_ids, attention_mask)
        return batch.padded(deque(self._states(batch, input_ids, token_type_ids), maxlen=1).pop())

    def first_token(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The last layer's output at [CLS], (n, 1, h): equal to `forward(…)[:, :1]`, but faster.

        The last layer is computed only for [CLS], which saves a tenth of the work of a BERT with
        six layers.
        """
        batch = self._batch(input_ids, attention_mask)
        hidden = deque(
            self._states(batch, input_ids, token_type_ids, first_only=True), maxlen=1
        ).pop()
        return hidden if hidden.dim() == 3 else hidden[:, None]

    def each_layer(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """The embedding output, then every layer's output, one at a time: (n, length, h) each.

        Parameters
        ----------
        input_ids, token_type_ids, attention_mask : as in `forward`
        position_ids : int64 (n, length), for sequences whose positions do not simply count from 0
        """
        batch = self._batch(input_ids, attention_mask)
        return map(batch.padded, self._states(batch, input_ids, token_type_ids, position_ids))

    def _batch(self, input_ids: Tensor, attention_mask: Tensor | None) -> PaddedBatch | PackedBatch:
        device = input_ids.device
        dtype = self.embeddings.word_embeddings.weight.dtype
        if device.type == 'cuda' and torch.is_autocast_enabled('cuda'):
            dtype = torch.get_autocast_dtype('cuda')
        dropout = self.config.attention_probs_dropout_prob if self.training else None
        head = self.config.hidden_size // self.config.num_attention_heads
        if not dropout and can_pack(device, dtype, head):
            return PackedBatch(input_ids, attention_mask)
        if attention_mask is None:
            return PaddedBatch(None, dropout)
        if not self.training and can_pack_on_cpu(device):
            return PackedCpuBatch(input_ids, attention_mask)
        return PaddedBatch(on_device(attention_mask, device), dropout)

    def _states(
        self,
        batch: PaddedBatch | PackedBatch,
        input_ids: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor | None = None,
        first_only: bool = False,
    ) -> Iterator[Tensor]:
        """Hidden states as the batch lays them out; `first_only`: from the last layer, only those
        of first tokens.
        """
        if input_ids.shape[1] > self.config.longest_input:
            raise InputError(
                f'a sequence of {input_ids.shape[1]} tokens was given, this BERT has '
                f'{self.config.longest_input} positions: lower the maximum length'
            )
        hidden = batch.laid_out(self.embeddings(input_ids, token_type_ids, position_ids))
        yield hidden
        for number, layer in enumerate(self.encoder.layer, 1):
            hidden = layer(hidden, batch, first_only and number == len(self.encoder.layer))
            yield hidden


class Embeddings(nn.Module):
    """The embeddings of wordpieces, token types and positions, summed and normalised: (n,
    length) to (n, length, h).

    Positions count from 0; in RoBERTa from `position_offset` on, over tokens that are not padding.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self._pad = config.pad_token_id
        self._offset = config.position_offset
        self.word_embeddings = nn.Embedding(
            config.vocab_size, size, padding_idx=config.pad_token_id
        )
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor | None = None
    ) -> Tensor:
        if position_ids is None and self._offset:
            is_token = (input_ids != self._pad).long()
            position_ids = is_token.cumsum(dim=1) * is_token + self._offset - 1
        if position_ids is None:
            positions = self.position_embeddings.weight[: input_ids.shape[1]]
        else:
            positions = self.position_embeddings(position_ids)
        summed = (
            self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids) + positions
        )
        return self.dropout(self.LayerNorm(summed))  # type: ignore[no-any-return]


class _SelfAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = Linear(config.hidden_size, config.hidden_size)
        self.key = Linear(config.hidden_size, config.hidden_size)
        self.value = Linear(config.hidden_size, config.hidden_size)

    def forward(
        self, hidden: Tensor, batch: PaddedBatch | PackedBatch, attending: Tensor
    ) -> Tensor:
        """Attention's output for `attending`, the hidden states of some positions, which attend
        to all of `hidden`.
        """
        pairs = ((self.query, attending), (self.key, hidden), (self.value, hidden))
        queries, keys, values = (layer(x).view(*x.shape[:-1], self.heads, -1) for layer, x in pairs)
        return batch.attend(queries, keys, values).reshape(attending.shape)


class _Output(nn.Module):
    """Dense layer, dropout, residual and layer norm, which follow attention and the feed-forward
    layer.
    """

    def __init__(self, size_in: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(size_in, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden)) + residual)  # type: ignore[no-any-return]


class _Attention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Output(config.hidden_size, config)

    def forward(
        self, hidden: Tensor, batch: PaddedBatch | PackedBatch, attending: Tensor
    ) -> Tensor:
        return self.output(self.self(hidden, batch, attending), attending)  # type: ignore[no-any-return]


class _Intermediate(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, hidden: Tensor) -> Tensor:
        if self.activation is functional.gelu and isinstance(
            self.dense, Linear
        ):  # no adapter around it
            return linear(hidden, self.dense.weight, self.dense.bias, gelu=True)
        return self.activation(self.dense(hidden))  # type: ignore[no-any-return, no-untyped-call]


class Layer(nn.Module):
    """Attention and feed-forward, on hidden states in the batch's layout; with `first_only`, only
    for [CLS].
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(config.intermediate_size, config)

    def forward(
        self, hidden: Tensor, batch: PaddedBatch | PackedBatch, first_only: bool = False
    ) -> Tensor:
        attended = self.attention(hidden, batch, batch.first(hidden) if first_only else hidden)
        return self.output(self.intermediate(attended), attended)  # type: ignore[no-any-return]

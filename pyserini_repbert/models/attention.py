"""The ways of a batch through a BERT: padded rows, or all tokens in one row without padding.

Packed tokens are attended by PyTorch's `varlen_attn`, which runs on CUDA in half precision and has
no dropout. On a CPU, attention alone is padded. All else is padded throughout. Models take and give
padded tensors in every case.
"""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from pyserini_repbert.models.precision import has_narrow_kernels, on_device

# Without cuDNN's attention, which makes a new plan for every shape: nearly every batch has a new
# one.
_CUDA_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_LARGEST_HEAD = 256  # of flash attention; its heads are multiples of 8


class PaddedBatch:
    """n sequences in rows of one length; attention reads (n, length, heads, size).

    `mask`, bool (n, length), is True if there is a token, and None if no sequence is padded.
    `dropout` is the share of attention's weights that training drops, and None outside training.
    """

    def __init__(self, mask: Tensor | None, dropout: float | None) -> None:
        self._mask = mask
        if mask is not None:
            self._mask = mask[:, None, None, :].to(torch.bool)
        self._dropout = dropout

    def laid_out(self, hidden: Tensor) -> Tensor:
        """Hidden states as attention reads them, from (n, length, h)."""
        return hidden

    def padded(self, hidden: Tensor) -> Tensor:
        """(n, length, h), from hidden states as attention reads them."""
        return hidden

    def first(self, hidden: Tensor) -> Tensor:
        """The hidden states of each sequence's first token."""
        return hidden[:, :1]

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attention's output, in the shape of the queries, which belong to all tokens or to the
        first ones.
        """
        q = queries.transpose(1, 2)
        k = keys.transpose(1, 2)
        v = values.transpose(1, 2)
        if self._dropout is not None and q.device.type == 'cpu' and q.dtype == torch.bfloat16:
            return _plain_attention(q, k, v, self._mask, self._dropout).transpose(1, 2)
        with _kernels(q.device, q.dtype):
            mixed = functional.scaled_dot_product_attention(
                q, k, v, attn_mask=self._mask, dropout_p=self._dropout or 0.0
            )
        return mixed.transpose(1, 2)


class PackedBatch:
    """The tokens of n sequences in one row; attention reads (tokens, heads, size).

    Has the methods of `PaddedBatch`.

    `ids`, int64 (n, length), are on the device that computes. `mask`, bool (n, length), is best in
    the host's memory: counting the tokens of a mask on a GPU waits for the GPU.
    """

    def __init__(self, ids: Tensor, mask: Tensor | None) -> None:
        self._n, self._length = ids.shape
        self._positions = None
        bounds = torch.arange(0, ids.numel() + 1, self._length)
        if mask is not None:
            self._positions = on_device(mask.flatten().nonzero().squeeze(1), ids.device)
            bounds = functional.pad(mask.sum(dim=1).cumsum(0), (1, 0))
        # The start of each sequence, and the end of the last one.
        self._bounds = on_device(bounds.to(torch.int32), ids.device)

    def laid_out(self, hidden: Tensor) -> Tensor:
        """(tokens, h) from (n, length, h)."""
        rows = hidden.flatten(0, 1)
        if self._positions is None:
            return rows
        return rows[self._positions]

    def padded(self, hidden: Tensor) -> Tensor:
        """(n, length, h), 0 at padding, from (tokens, h)."""
        if self._positions is not None:
            rows = hidden.new_zeros(self._n * self._length, hidden.shape[1])
            hidden = rows.index_copy(0, self._positions, hidden)
        return hidden.view(self._n, self._length, -1)

    def first(self, hidden: Tensor) -> Tensor:
        """(n, h) from (tokens, h)."""
        return hidden[self._bounds[:-1]]

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attention's output (tokens, heads, size), or (n, heads, size) for the queries of the
        first tokens.
        """
        from torch.nn.attention.varlen import varlen_attn

        bounds = self._bounds
        longest = self._length
        if len(queries) < len(keys):
            bounds = torch.arange(self._n + 1, dtype=torch.int32, device=queries.device)
            longest = 1
        mixed = varlen_attn(queries, keys, values, bounds, self._bounds, longest, self._length)
        return cast(Tensor, mixed)


class PackedCpuBatch(PackedBatch):
    """Packed tokens whose attention is padded; has the methods of `PackedBatch`.

    On a CPU, most of the time goes into linear layers, which here compute hardly any padding.
    oneDNN keeps code for each number of tokens. So a few more are added, and few numbers occur.

    `mask`, bool (n, length), is True if there is a token.
    """

    def __init__(self, ids: Tensor, mask: Tensor) -> None:
        super().__init__(ids, mask)
        self._padded_batch = PaddedBatch(mask, dropout=None)
        positions = mask.flatten().nonzero().squeeze(1)
        self._n_tokens = len(positions)
        # The added position is the first one again.
        n_added = rounded_up(self._n_tokens) - self._n_tokens
        self._filled_positions = functional.pad(positions, (0, n_added))

    def laid_out(self, hidden: Tensor) -> Tensor:
        return hidden.flatten(0, 1)[self._filled_positions]

    def padded(self, hidden: Tensor) -> Tensor:
        return super().padded(hidden[: self._n_tokens])

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        padded_keys = self._padded_heads(keys)
        padded_values = self._padded_heads(values)
        if len(queries) < len(keys):
            first = queries[:, None]
            return self._padded_batch.attend(first, padded_keys, padded_values)[:, 0]
        mixed = self._padded_batch.attend(self._padded_heads(queries), padded_keys, padded_values)
        return self.laid_out(mixed)

    def _padded_heads(self, heads: Tensor) -> Tensor:
        """(n, length, heads, size), 0 at padding, from (tokens, heads, size)."""
        padded = self.padded(heads.flatten(1))
        return padded.view(*padded.shape[:2], *heads.shape[1:])


def rounded_up(n_tokens: int) -> int:
    """The least number of tokens of a packed batch that is not below `n_tokens`.

    There are 16 numbers between two powers of two, so that less than a sixteenth is added.
    """
    step = 1 << max(0, n_tokens.bit_length() - 5)
    return -(-n_tokens // step) * step


def can_pack(device: torch.device, dtype: torch.dtype, head: int) -> bool:
    """Whether `PackedBatch` runs on `device` in `dtype`, for heads of this size."""
    if device.type != 'cuda' or dtype not in (torch.float16, torch.bfloat16):
        return False
    if head % 8 or head > _LARGEST_HEAD:
        return False
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    if not torch.backends.cuda.is_flash_attention_available():
        return False
    # From PyTorch 2.10 on.
    return importlib.util.find_spec('torch.nn.attention.varlen') is not None


def can_pack_on_cpu(device: torch.device) -> bool:
    """Whether `PackedCpuBatch` runs: on a CPU, unless operators are recorded, as for ONNX."""
    return device.type == 'cpu' and not torch.compiler.is_compiling()


def _kernels(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[None]:
    """The kernels that attention may use.

    On a CPU with AMX, fused attention packs inputs that are not float32 for AMX. Where
    `ATEN_CPU_CAPABILITY` forbids AVX-512, no kernel packs (PyTorch 2.13: 'pack_vnni2 is only
    supported when avx512 is supported').
    """
    if device.type == 'cuda':
        return sdpa_kernel(_CUDA_KERNELS)
    if device.type != 'cpu' or dtype is torch.float32:
        return nullcontext()
    if torch.cpu._is_amx_tile_supported() and has_narrow_kernels():
        return sdpa_kernel(SDPBackend.MATH)
    return nullcontext()


def _plain_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attention as matrix products; on a CPU, the gradient of the fused kernel in bfloat16 takes
    half of a step.
    """
    scores = (q / q.shape[-1] ** 0.5) @ k.transpose(2, 3)
    if mask is not None:
        no_change = torch.zeros(mask.shape, dtype=q.dtype)
        scores = scores + no_change.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1, dtype=scores.dtype)
    return functional.dropout(weights, dropout, training=dropout > 0) @ v

"""What every dense encoder of ours runs: a network over the tokens of single texts.

A few texts on a CPU are computed in NumPy where PyTorch is not imported: importing it takes longer
than all else that a question needs. Vectors are the same except for rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.numpy_bert import NumpyTextNetwork
from pyserini_repbert.models.precision import usable_device
from pyserini_repbert.models.token_ids import Progress, TokenIds
from pyserini_repbert.models.tokenizer import ModelInputs, WordPieceTokenizer

if TYPE_CHECKING:
    from pyserini_repbert.models.batching import Forward

# Devices that compute while the host tokenises the next texts.
OVERLAPPING = ('cuda',)
# How many texts such a device gets together.
GROUP = 4096
# So many texts are computed in NumPy in all: beyond them, importing PyTorch costs less.
MOST_IN_NUMPY = 16


def needs_pytorch(n_texts: int) -> bool:
    """Whether a number of texts is computed in PyTorch on a CPU: there are many, or it is there."""
    return n_texts > MOST_IN_NUMPY or 'torch' in sys.modules


def use_pytorch() -> None:
    """Compute every text in PyTorch from here on, however few there are."""
    import torch  # noqa: F401 - what is imported is used


class LazyNetworks:
    """A network in PyTorch and the same in NumPy, each made when it is first used.

    Several tokenizers may share it.

    Parameters
    ----------
    make : gives the network in PyTorch
    make_numpy : gives the same in NumPy; None if it cannot compute the model
    device_name : where the network in PyTorch runs
    is_float32 : whether its weights are float32: NumPy computes only in float32
    """

    def __init__(
        self,
        make: Callable[[], Any],
        make_numpy: Callable[[], NumpyTextNetwork | None],
        device_name: str,
        is_float32: bool,
    ) -> None:
        self._make = make
        self._make_numpy = make_numpy
        self.device_name = device_name
        self._is_plain = device_name == 'cpu' and is_float32
        self._n_in_numpy = 0

    @classmethod
    def made(cls, forward: Any, device_name: str) -> Self:
        """A network that is there in PyTorch."""
        return cls(lambda: forward, lambda: None, device_name, is_float32=False)

    @cached_property
    def forward(self) -> Any:
        """The network in PyTorch, a module of it that is a `Forward`."""
        return self._make()

    def open(self) -> None:
        """Read the weights, so that errors in them are raised here."""
        if needs_pytorch(0) or not self._is_plain or self._numpy is None:
            _ = self.forward

    @cached_property
    def _numpy(self) -> NumpyTextNetwork | None:
        return self._make_numpy()

    def numpy_for(self, n_texts: int) -> NumpyTextNetwork | None:
        """The network in NumPy, if it should compute some texts; None: PyTorch is."""
        if not self._is_plain or needs_pytorch(self._n_in_numpy + n_texts):
            return None
        self._n_in_numpy += n_texts
        return self._numpy


@dataclass(frozen=True)
class TextNetwork:
    """A network, and the tokenizer of its texts.

    Attributes
    ----------
    networks : they give a vector, float32 (n, d), for each input
    tokenizer : of the texts
    dimension : d
    token_type : of all tokens
    """

    networks: LazyNetworks
    tokenizer: WordPieceTokenizer
    dimension: int
    token_type: int = 0

    def encode(
        self,
        texts: Sequence[str] | TokenIds,
        wordpieces: int,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> NDArray[np.float32]:
        """The vectors of texts, float32 (n, d), in their order.

        Parameters
        ----------
        texts : texts, or their token ids
        wordpieces : how many are kept of each, special tokens not counted
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of texts done since the last call
        """
        if not len(texts):
            return np.empty((0, self.dimension), np.float32)
        in_numpy = self.networks.numpy_for(len(texts))
        if in_numpy is None:
            return self._encode_in_pytorch(texts, wordpieces, token_budget, on_progress)
        vectors = in_numpy.vectors(self.tokenizer.single(texts, wordpieces, self.token_type))
        on_progress(len(texts))
        return vectors

    def _encode_in_pytorch(
        self,
        texts: Sequence[str] | TokenIds,
        wordpieces: int,
        token_budget: int | None,
        on_progress: Progress,
    ) -> NDArray[np.float32]:
        from pyserini_repbert.models.batching import run_batched

        forward: Forward = self.networks.forward
        device = usable_device(self.networks.device_name)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        start = 0
        with closing(self._groups(texts, wordpieces, device.type)) as groups:
            for inputs in groups:
                end = start + len(inputs)
                vectors[start:end] = run_batched(
                    forward, inputs, self.tokenizer.pad, device, token_budget, on_progress
                )
                start = end
        return vectors

    def _groups(
        self, texts: Sequence[str] | TokenIds, wordpieces: int, device_type: str
    ) -> Generator[ModelInputs]:
        """The model inputs of texts: all at once, or group by group.

        A group is made while the one before it is computed.
        """
        from pyserini_repbert.models.ahead import ahead

        single = self.tokenizer.single
        overlaps = device_type in OVERLAPPING and len(texts) > GROUP
        if isinstance(texts, TokenIds) or not overlaps:
            yield single(texts, wordpieces, self.token_type)
            return
        groups = (texts[first : first + GROUP] for first in range(0, len(texts), GROUP))
        yield from ahead(single(group, wordpieces, self.token_type) for group in groups)

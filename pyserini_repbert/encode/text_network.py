"""What every dense encoder of ours runs: a network over the tokens of single texts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.models.batching import Forward, Progress, ahead, run_batched
from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.models.tokenizer import ModelInputs, WordPieceTokenizer

# Devices that compute while the host tokenises the next texts.
OVERLAPPING = ('cuda',)
# Texts that such a device gets together.
GROUP = 4096


@dataclass(frozen=True)
class TextNetwork:
    """A network, its tokenizer and its device.

    Attributes
    ----------
    forward : the network; it gives a vector, float32 (n, d), for each input
    tokenizer : of the texts
    device : where the network runs
    dimension : d
    token_type : of all tokens
    """

    forward: Forward
    tokenizer: WordPieceTokenizer
    device: torch.device
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
        vectors = np.empty((len(texts), self.dimension), np.float32)
        start = 0
        with closing(self._groups(texts, wordpieces)) as groups:
            for inputs in groups:
                end = start + len(inputs)
                vectors[start:end] = run_batched(
                    self.forward, inputs, self.tokenizer.pad, self.device, token_budget, on_progress
                )
                start = end
        return vectors

    def _groups(self, texts: Sequence[str] | TokenIds, wordpieces: int) -> Generator[ModelInputs]:
        """The model inputs of texts: all at once, or group by group.

        A group is made while the one before it is computed.
        """
        if not len(texts):
            return
        single = self.tokenizer.single
        overlaps = self.device.type in OVERLAPPING and len(texts) > GROUP
        if isinstance(texts, TokenIds) or not overlaps:
            yield single(texts, wordpieces, self.token_type)
            return
        groups = (texts[first : first + GROUP] for first in range(0, len(texts), GROUP))
        yield from ahead(single(group, wordpieces, self.token_type) for group in groups)

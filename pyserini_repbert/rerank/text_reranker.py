"""The base of all rerankers but EPIC's: those whose model reads query and passage together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.batching import Forward, run_batched, usual_budget
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, open_checkpoint
from pyserini_repbert.models.pair_inputs import Built
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Progress, Reranker, Work


class TextReranker(Reranker):
    """Opens a checkpoint and counts work; subclasses own the model and document the parameters.

    Attributes
    ----------
    checkpoint : opened
    name : the checkpoint's catalog name or folder
    token_budget : padded tokens in a batch
    tokenizer : the checkpoint's
    work : what it has done so far
    """

    work: Work
    _forward: Forward

    def __init__(self, model: AnyCheckpoint, device: str, precision: Precision | str, token_budget: int | None) -> None:
        self.checkpoint = open_checkpoint(model, 'rerankers')
        self.name = self.checkpoint.name
        self.device = usable_device(device)
        self.precision: str = Precision(precision).on(self.device)
        self.dtype = Precision(precision).dtype(self.device)
        self.token_budget = usual_budget(token_budget, self.device)
        self.tokenizer = self.checkpoint.tokenizer()
        self.work = Work()

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        return {**super().identity(), 'dtype': str(self.precision)}

    def _logits(self, inputs: Sequence[Built], pad: int, on_progress: Progress | None) -> NDArray[np.float32]:
        """The logits of model inputs, float32 (n, labels), in their order; counted as work."""
        sequences = [built.sequence for built in inputs]
        self.work.inferences += len(sequences)
        self.work.tokens += sum(len(built.input_ids) for built in sequences)
        return run_batched(self._forward, sequences, pad, self.device, self.token_budget, on_progress)

    def _tokens(self, queries: Sequence[str], lists: Sequence[Ranking]) -> dict[str, list[int]]:
        """The wordpiece ids of each distinct query and text, by text: each is tokenised once."""
        texts = (candidate.text or '' for candidates in lists for candidate in candidates)
        distinct = list(dict.fromkeys([*queries, *texts]))
        return dict(zip(distinct, self.tokenizer.ids(distinct), strict=True))


def each_pair(queries: Sequence[str], lists: Sequence[Ranking]) -> list[tuple[str, str]]:
    """(query, text) of every candidate, list after list; '' for a candidate without text."""
    return [
        (query, candidate.text or '')
        for query, candidates in zip(queries, lists, strict=True)
        for candidate in candidates
    ]


def in_lists(scores: NDArray[Any], lists: Sequence[Sized]) -> list[NDArray[np.floating]]:
    """Scores in the order of `each_pair`, cut into an array for each list."""
    ends = np.cumsum([0, *map(len, lists)]).tolist()
    return [scores[start:end] for start, end in pairwise(ends)]

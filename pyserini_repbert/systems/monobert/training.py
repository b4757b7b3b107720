"""Training monoBERT: cross-entropy on as many relevant as non-relevant inputs.

Multi-Stage Document Ranking with BERT, eq. 1 and section 4.1. https://arxiv.org/abs/1910.14424
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pyserini_repbert.systems.monobert.inputs import PairInputs
from pyserini_repbert.systems.monobert.network import MonoBert
from pyserini_repbert.tasks.cross_encoder import CrossEncoderTask, first_half
from pyserini_repbert.tasks.losses import relevance_cross_entropy
from pyserini_repbert.tasks.task import Batch, GroupTask, outputs, padded


class MonoBertTask(CrossEncoderTask, GroupTask):
    """A query beside a relevant passage, and beside a non-relevant one (Multi-Stage eq. 1)."""

    module = MonoBert
    builder = PairInputs
    inputs: PairInputs
    trained_in_body = ('bert.pooler.',)

    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        sequences = [
            self.inputs.build(queries[row], text).sequence
            for row, text in zip(query_of, passages, strict=True)
        ]
        return padded(sequences, self.tokenizer.pad)

    def scores(self, batch: Batch) -> Tensor:
        """The log-odds of relevance."""
        logits = outputs(self.ranker, batch)
        return logits[:, 1] - logits[:, 0]

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy (Multi-Stage eq. 1); `group_loss` for groups."""
        if 'present' in batch:
            return self.group_loss(batch)
        logits = outputs(self.ranker, batch)
        return relevance_cross_entropy(logits, first_half(logits))

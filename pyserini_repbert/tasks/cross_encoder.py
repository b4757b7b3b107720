"""monoBERT and duoBERT: cross-entropy on as many relevant as non-relevant inputs (Multi-Stage
eq. 1-2, section 4.1).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cross_encoder import MAX_TOKENS, CrossEncoder
from pyserini_repbert.models.cross_encoder_inputs import CrossEncoderInputs
from pyserini_repbert.tasks.task import (
    Task,
    limit,
)


class CrossEncoderTask(Task):
    """An instance gives two inputs, one relevant and one not: batches are balanced (Multi-Stage
    section 4.1).
    """

    known = ('layout', 'max_query_length', 'max_length')
    inputs_per_pair = 2
    module: type[CrossEncoder]
    builder: type[CrossEncoderInputs]

    def new_ranker(self, sizes: BertConfig) -> CrossEncoder:
        self.inputs = self.builder(
            self.tokenizer,
            self.recipe.ranking.get('layout', self.builder.layout),
            limit(self.recipe, 'max_length', MAX_TOKENS, sizes.max_position_embeddings),
            limit(self.recipe, 'max_query_length', self.builder.max_query),
        )
        return self.module(sizes)

    def ranking(self) -> dict[str, Any]:
        lengths = {'max_query_length': self.inputs.max_query, 'max_length': self.inputs.max_tokens}
        return {'system': str(self.recipe.system), 'layout': str(self.inputs.layout), **lengths}


def first_half(logits: Tensor) -> Tensor:
    """Targets of as many relevant inputs as others: bool (n,)."""
    return torch.arange(len(logits), device=logits.device) < len(logits) // 2

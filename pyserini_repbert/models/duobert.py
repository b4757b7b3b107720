"""duoBERT (Nogueira et al., 2019): BERT reads a query and two candidates, and judges if the first is more relevant.

Use it as a last stage, on monoBERT's best tens of candidates: k of them take k(k - 1) forward passes.
https://arxiv.org/abs/1910.14424, section 3.3.
"""

from __future__ import annotations

import torch
from torch import nn

from pyserini_repbert.models.cross_encoder import CrossEncoder

SYSTEM = 'duobert'
SEGMENTS = 3  # query, candidate i, candidate j


class DuoBert(CrossEncoder):
    """Pairwise classifier: token type 0 for `[CLS] query [SEP]`, 1 for `candidate i [SEP]`, 2 for candidate j."""

    def with_three_segments(self) -> DuoBert:
        """Give a body of two token types a third, of zeros; a body of three stays as it is.

        The authors' TensorFlow code looks segments up with a one-hot product, in which a segment beyond the table is
        silently a zero vector: that is what checkpoints of two token types were trained with.
        """
        old = self.bert.embeddings.token_type_embeddings
        if old.num_embeddings < SEGMENTS:
            new = nn.Embedding(SEGMENTS, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype)
            with torch.no_grad():
                new.weight.zero_()
                new.weight[: old.num_embeddings] = old.weight
            self.bert.embeddings.token_type_embeddings = new
        return self

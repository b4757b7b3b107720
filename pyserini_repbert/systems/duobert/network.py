"""duoBERT's network: BERT with three segments, for a query and two candidates."""

from __future__ import annotations

import torch
from torch import nn

from pyserini_repbert.models.cross_encoder import CrossEncoder

NAME = 'duobert'
SEGMENTS = 3  # query, candidate i, candidate j


class DuoBert(CrossEncoder):
    """duoBERT, the pairwise classifier (Nogueira et al., 2019, section 3.3,
    https://arxiv.org/abs/1910.14424).

    Use it as a last stage, on the few dozen best candidates of monoBERT: k candidates take k(k - 1)
    model inputs. Token type 0: `[CLS] query [SEP]`, 1: `candidate i [SEP]`, 2: `candidate j [SEP]`.
    """

    def with_three_segments(self) -> DuoBert:
        """This model, changed in place: a body of two token types gets a third embedding, of zeros.

        The authors' TensorFlow code looks token types up with a one-hot product, which silently
        gives a zero vector for a type beyond the table: checkpoints of two token types were trained
        with that.
        """
        old = self.bert.embeddings.token_type_embeddings
        if old.num_embeddings < SEGMENTS:
            new = nn.Embedding(
                SEGMENTS, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype
            )
            with torch.no_grad():
                new.weight.zero_()
                new.weight[: old.num_embeddings] = old.weight
            self.bert.embeddings.token_type_embeddings = new
        return self

"""BERT over query and candidates together, and a linear layer over the pooled [CLS].

The base of the networks of monoBERT and duoBERT.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyserini_repbert.models.bert import Bert, Pooler
from pyserini_repbert.models.bert_config import BertConfig

MAX_TOKENS = 512  # Multi-Stage section 3.2 and 3.3, special tokens included


class CrossEncoder(nn.Module):
    """BERT with its pooler, dropout and a linear classifier; names as in
    BertForSequenceClassification.

    `labels` is the number of logits: 2 (index 1 is "relevant"), or 1 (the log-odds of relevance),
    as in cross-encoders of sentence-transformers.
    """

    def __init__(self, config: BertConfig, labels: int = 2) -> None:
        super().__init__()
        self.bert = Bert(config, pooler=True)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, labels)
        nn.init.normal_(self.classifier.weight, std=config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Logits, float32 (n, labels); parameters and errors as in `Bert.forward`.

        The head computes in float32 whatever the body's dtype: rounding logits would tie
        candidates.
        """
        first = self.bert.first_token(input_ids, token_type_ids, attention_mask)
        pooled = cast(Pooler, self.bert.pooler)(first.to(self.classifier.weight.dtype))
        logits: Tensor = self.classifier(self.dropout(pooled))
        return logits.float()

    def to_device(self, device: torch.device, dtype: torch.dtype) -> CrossEncoder:
        """Move to `device`; embeddings and layers become `dtype`, pooler and classifier stay in
        float32.
        """
        self.to(device)
        self.bert.embeddings.to(dtype=dtype)
        self.bert.encoder.to(dtype=dtype)
        return self


def logit_differences(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """The log-odds of relevance, float64 (n,), from float32 logits (n, 2) or (n, 1)."""
    wide = logits.astype(np.float64)
    if wide.shape[1:] == (2,):
        return wide[:, 1] - wide[:, 0]
    return wide.reshape(-1)


def log_probabilities(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """log p of relevance, the log-softmax of two logits, from their differences: float64 of the
    same shape.

    Unlike p, which is 1.0 in float64 for differences from 37 on, log p ≈ -exp(-difference) grows
    strictly with the difference up to 700. NaN stays NaN.
    """
    # NaN stands for a pair that was not scored
    with np.errstate(invalid='ignore'):
        return -np.logaddexp(0.0, -differences)

"""CEDR-DRMM: histograms of similarities (Guo et al., 2016) in every layer (CEDR sections 2.2 and 2.3).

As released: 11 bins, no IDF gate, and a sum over all 20 places of a query, padding included. Counting has no gradient:
BERT learns through [CLS] only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyserini_repbert.models.bert import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker, keep_columns
from pyserini_repbert.models.cedr.settings import CedrSettings
from pyserini_repbert.models.cedr.similarity import Evidence

N_BINS = 11
_HIDDEN = 5
_NUDGE = 1.000001  # puts a similarity of exactly 1 into the last bin (the released code)
_LEAST_COUNT = 1e-5  # added before the logarithm


def similarity_histogram(similarity: Tensor, query_mask: Tensor, document_mask: Tensor) -> Tensor:
    """How many document tokens fall into each bin of similarity to each query token.

    Ten bins of equal width cover [-1, 1), the eleventh is 1. The bin of a similarity within rounding (1e-6) of an edge
    depends on that rounding, and so on what else is in the batch.

    Parameters
    ----------
    similarity : float32 (n, channels, q, d)
    query_mask, document_mask : bool (n, q), (n, d); only pairs of real tokens count

    Returns
    -------
    float32 (n, channels, q, 11), whole numbers
    """
    n, channels, q, _ = similarity.shape
    bins = ((similarity + _NUDGE) / 2 * (N_BINS - 1)).long().clamp_(0, N_BINS - 1)
    real = query_mask[:, None, :, None] & document_mask[:, None, None, :]
    bins.masked_fill_(~real, N_BINS)  # one bin more, for what does not count
    rows = n * channels * q
    bins += torch.arange(0, rows * (N_BINS + 1), N_BINS + 1, device=bins.device).view(n, channels, q, 1)
    counts = torch.bincount(bins.flatten(), minlength=rows * (N_BINS + 1))
    return counts.view(n, channels, q, N_BINS + 1)[..., :N_BINS].float()


class CedrDrmm(CedrRanker):
    """DRMM on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.hidden_1 = nn.Linear(N_BINS * self.channels + self.cls_size, _HIDDEN)
        self.hidden_2 = nn.Linear(_HIDDEN, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """Log counts of each query token, bin by bin, then [CLS]: (n, q, bins · channels + h)."""
        counts = similarity_histogram(evidence.similarity.detach(), evidence.query_mask, evidence.document_mask)
        logs = (counts + _LEAST_COUNT).log().permute(0, 2, 3, 1).flatten(2)
        return self._with_cls(logs, evidence.cls.unsqueeze(1).expand(-1, logs.shape[1], -1))

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,): the sum over the query's places."""
        terms: Tensor = self.hidden_2(self.hidden_1(features).relu())
        return terms.squeeze(2).masked_fill(~evidence.counted, 0.0).sum(dim=1)

    def _keep_channels(self, n_channels: int) -> None:
        self.hidden_1 = keep_columns(self.hidden_1, N_BINS, self.channels, n_channels)

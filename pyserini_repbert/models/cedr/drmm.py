"""CEDR-DRMM: histograms of similarities (Guo et al., 2016) in every layer (CEDR sections 2.2 and 2.3).

As in the released code: 11 bins, no IDF gate, and a sum over all 20 query positions, padding included. Counting has no
gradient: BERT learns through [CLS] only.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker, Evidence, keep_columns
from pyserini_repbert.models.cedr.settings import CedrSettings

N_BINS = 11
_DRMM_HIDDEN = 5
_NUDGE = 1.000001  # puts a similarity of exactly 1 into the last bin (the released code)
_LEAST_COUNT = 1e-5  # added before the logarithm


def similarity_histogram(similarity: Tensor, query_mask: Tensor, document_mask: Tensor) -> Tensor:
    """How many document tokens fall into each bin of similarity to each query token.

    Ten bins of equal width cover [-1, 1), the eleventh counts similarities of 1. Within rounding (1e-6) of an edge, the
    bin depends on rounding, and so on the rest of the batch.

    Parameters
    ----------
    similarity : float32 (n, channels, q, d)
    query_mask, document_mask : bool (n, q), (n, d), True at tokens; only pairs of tokens count

    Returns
    -------
    float32 (n, channels, q, 11), whole numbers
    """
    bins = (similarity + _NUDGE).mul_((N_BINS - 1) / 2).int().clamp_(0, N_BINS - 1).long()
    real = (query_mask[:, :, None] & document_mask[:, None, :]).to(similarity.dtype)[:, None]
    counts = similarity.new_zeros((*similarity.shape[:3], N_BINS))
    return counts.scatter_add_(3, bins, real.expand_as(similarity))


class CedrDrmm(CedrRanker):
    """DRMM on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.hidden_1 = nn.Linear(N_BINS * self.channels + self.cls_size, _DRMM_HIDDEN)
        self.hidden_2 = nn.Linear(_DRMM_HIDDEN, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """Log counts of each query position, bin by bin, then [CLS]: (n, q, bins · channels + h).

        With `pad_query`, q is `max_query_length`.
        """
        counts = similarity_histogram(evidence.similarity.detach(), evidence.query_mask, evidence.document_mask)
        if self.settings.pad_query:
            counts = functional.pad(counts, (0, 0, 0, self.settings.max_query_length - counts.shape[2]))
        logs = (counts + _LEAST_COUNT).log().permute(0, 2, 3, 1).flatten(2)
        return self._with_cls(logs, evidence.cls.unsqueeze(1).expand(-1, logs.shape[1], -1))

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,): the sum over query positions."""
        terms: Tensor = self.hidden_2(self.hidden_1(features).relu()).squeeze(2)
        if not self.settings.pad_query:
            terms = terms.masked_fill(~evidence.query_mask, 0.0)
        return terms.sum(dim=1)

    def _keep_channels(self, n_channels: int) -> None:
        self.hidden_1 = keep_columns(self.hidden_1, N_BINS, self.channels, n_channels)

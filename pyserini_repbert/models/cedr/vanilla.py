"""Vanilla BERT (CEDR section 3.1, "Baselines"): a linear layer on [CLS]."""

from __future__ import annotations

from torch import Tensor, nn

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker
from pyserini_repbert.models.cedr.settings import CedrSettings
from pyserini_repbert.models.cedr.similarity import Evidence


class VanillaBert(CedrRanker):
    """Scores by [CLS] of the last layer, without BERT's pooler, averaged over the parts of a long document."""

    needs_similarity = False

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.dropout = nn.Dropout(0.1)  # the released code
        self.cls = nn.Linear(config.hidden_size, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """[CLS]: float32 (n, h)."""
        return evidence.cls

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,)."""
        scores: Tensor = self.cls(self.dropout(features))
        return scores.squeeze(1)

    def _keep_channels(self, n_channels: int) -> None:
        """Does nothing: [CLS] has the same size in each layer."""

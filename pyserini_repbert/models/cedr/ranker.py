"""The base of the four CEDR models: BERT, its evidence on pairs, and running only its first layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor, nn

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.layout import PairBatch
from pyserini_repbert.models.cedr.settings import CedrSettings
from pyserini_repbert.models.cedr.similarity import Evidence, gather_evidence


class CedrRanker(nn.Module, ABC):
    """A BERT and a head that scores its evidence.

    Subclasses turn evidence into features, and features into a score; this class owns the body.

    Attributes
    ----------
    settings : the model's settings
    bert : the body
    channels : number of similarity matrices of a pair: of the embedding output and of every layer
    cls_size : how many features are of [CLS]: h, or 0 where the model is not joint
    needs_similarity : whether features are made of similarities
    """

    needs_similarity = True

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__()
        self.settings = settings
        self.bert = Bert(config)
        self.channels = config.num_hidden_layers + 1
        self.cls_size = config.hidden_size if settings.joint else 0

    def evidence(self, batch: PairBatch) -> Evidence:
        """BERT's evidence on each pair."""
        return gather_evidence(self.bert, batch, self.needs_similarity)

    @abstractmethod
    def features(self, evidence: Evidence) -> Tensor:
        """The input of the head's first linear layer: float32 (n, …, features), [CLS] last if the model is joint."""

    @abstractmethod
    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores from features: float32 (n,)."""

    def forward(self, batch: PairBatch) -> Tensor:
        """Scores: float32 (n,), any real number, the higher the better."""
        evidence = self.evidence(batch)
        return self.score_features(self.features(evidence), evidence)

    def keep_layers(self, n_layers: int) -> None:
        """Run only BERT's first `n_layers` layers from now on (CEDR section 3.2, Figure 2b).

        [CLS] is then taken from layer `n_layers`. The head keeps its weights for the similarities of the layers that
        run; the others are dropped, as if their signals were 0. This is for a head trained on all layers: a model
        trained with fewer has them in its config.

        Raises InputError for fewer than one layer, or more than there are.
        """
        config = self.bert.config
        if not 1 <= n_layers <= config.num_hidden_layers:
            there = config.num_hidden_layers
            raise InputError(f'{n_layers} layers were asked for, expected 1 to the {there} that this BERT has')
        self.bert.encoder.layer = self.bert.encoder.layer[:n_layers]
        self.bert.config = replace(config, num_hidden_layers=n_layers)
        self._keep_channels(n_layers + 1)
        self.channels = n_layers + 1

    @abstractmethod
    def _keep_channels(self, n_channels: int) -> None:
        """Drop the head's weights for channels from `n_channels` on; `self.channels` is still the number before."""

    def _with_cls(self, signals: Tensor, cls: Tensor) -> Tensor:
        """Signals (n, …), followed by [CLS] if the model is joint."""
        return torch.cat([signals, cls], dim=-1) if self.settings.joint else signals


def keep_columns(linear: nn.Linear, groups: int, channels: int, kept: int) -> nn.Linear:
    """`linear` for the first `kept` channels: its inputs are (groups × channels), then others, which all stay."""
    grouped, others = linear.weight[:, : groups * channels], linear.weight[:, groups * channels :]
    grouped = grouped.reshape(-1, groups, channels)[:, :, :kept].reshape(-1, groups * kept)
    smaller = nn.Linear(groups * kept + others.shape[1], linear.out_features, device=linear.weight.device)
    with torch.no_grad():
        smaller.weight.copy_(torch.cat([grouped, others], dim=1))
        smaller.bias.copy_(linear.bias)
    return smaller


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

"""The base of the four CEDR models: BERT, its evidence on pairs, and running only its first
layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.layout import PairBatch
from pyserini_repbert.systems.cedr.settings import CedrSettings
from pyserini_repbert.systems.cedr.static_vectors import StaticVectors

_LEAST_NORM = 1e-9  # added to norms, so that a zero vector has similarity 0


class CedrRanker(nn.Module, ABC):
    """A BERT and a head that scores its evidence.

    Subclasses turn evidence into features, and features into a score; this class owns the body.
    """

    needs_similarity = True  # whether features are made from similarities

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__()
        self.settings = settings
        self.bert: Any = StaticVectors(config) if settings.static else Bert(config)
        # Similarity matrices of a pair: of the embeddings and each layer.
        self.channels = 1 if settings.static else config.num_hidden_layers + 1
        # How many features are of [CLS].
        self.cls_size = config.hidden_size if settings.joint else 0

    def evidence(self, batch: PairBatch, similarity: bool | None = None) -> Evidence:
        """BERT's evidence on each pair; `similarity`: with the similarities of each layer, by
        default where needed.

        Query vectors are taken from the row of a document's first part, as in the released code.
        """
        matrices = []
        hidden = batch.input_ids
        states = self.bert.each_layer(
            batch.input_ids, batch.token_type_ids, batch.attention_mask, batch.position_ids
        )
        for hidden in states:
            if self.needs_similarity if similarity is None else similarity:
                vectors = hidden.flatten(0, 1)
                query = vectors[batch.query_index]
                document = vectors[batch.document_index]
                matrices.append(
                    cosine_matrix(query, document, batch.query_mask, batch.document_mask)
                )
        cls = batch.part_weights @ hidden[:, 0].float()
        shape = (*batch.query_index.shape, batch.document_index.shape[1])
        stacked = (
            torch.stack(matrices, dim=1) if matrices else cls.new_zeros((shape[0], 0, *shape[1:]))
        )
        return Evidence(stacked, cls, batch.query_mask, batch.document_mask)

    @abstractmethod
    def features(self, evidence: Evidence) -> Tensor:
        """The input of the head's first linear layer: float32 (n, …, features), [CLS] last if
        the model is joint.
        """

    @abstractmethod
    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores from features: float32 (n,)."""

    def forward(self, batch: PairBatch) -> Tensor:
        """Scores: float32 (n,), any real number, the higher the better."""
        evidence = self.evidence(batch)
        return self.score_features(self.features(evidence), evidence)

    def keep_layers(self, n_layers: int) -> None:
        """Run only BERT's first `n_layers` layers from now on (CEDR section 3.2, Figure 2b).

        [CLS] is then taken from layer `n_layers`. The head keeps its weights for the similarities
        of the layers that run; the others are dropped, as if their signals were 0. This is for a
        head trained on all layers: a model trained with fewer has them in its config.

        Raises InputError for fewer than one layer, or more than there are.
        """
        if self.settings.static:
            raise InputError('static word vectors have no layers: leave their number out')
        config = self.bert.config
        if not 1 <= n_layers <= config.num_hidden_layers:
            there = config.num_hidden_layers
            raise InputError(
                f'{n_layers} layers were asked for, expected 1 to the {there} that this BERT has'
            )
        self.bert.encoder.layer = self.bert.encoder.layer[:n_layers]
        self.bert.config = replace(config, num_hidden_layers=n_layers)
        self._keep_channels(n_layers + 1)
        self.channels = n_layers + 1

    @abstractmethod
    def _keep_channels(self, n_channels: int) -> None:
        """Drop the head's weights for channels from `n_channels` on; `self.channels` is still
        the number before.
        """

    def _with_cls(self, signals: Tensor, cls: Tensor) -> Tensor:
        """Signals (n, …), followed by [CLS] if the model is joint."""
        return torch.cat([signals, cls], dim=-1) if self.settings.joint else signals


def keep_columns(linear: nn.Linear, groups: int, channels: int, kept: int) -> None:
    """Drop all but the first `kept` channels; inputs of `linear` are (groups × channels), then
    others, which stay.
    """
    weight = linear.weight.detach()
    grouped = weight[:, : groups * channels].reshape(-1, groups, channels)[:, :, :kept].flatten(1)
    linear.weight = nn.Parameter(torch.cat([grouped, weight[:, groups * channels :]], dim=1))


class VanillaBert(CedrRanker):
    """Scores by [CLS] of the last layer, without BERT's pooler, averaged over the parts of a
    long document.
    """

    needs_similarity = False

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.dropout = nn.Dropout(0.1)  # the released code
        self.cls = nn.Linear(config.hidden_size, 1)

    def features(self, evidence: Evidence) -> Tensor:
        return evidence.cls

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        scores: Tensor = self.cls(self.dropout(features))
        return scores.squeeze(1)

    def _keep_channels(self, n_channels: int) -> None:
        """Does nothing: [CLS] has the same size in each layer."""


class Evidence(NamedTuple):
    """What a CEDR head reads of n pairs.

    Channel 0 of the similarities is of the embedding output, channel l of layer l; none if they
    were not asked for.
    """

    similarity: Tensor  # float32 (n, channels, q, d), cosines, 0 where there is no token
    # float32 (n, h), the last layer's [CLS] before BERT's pooler, averaged over the parts of a
    # document
    cls: Tensor
    query_mask: Tensor  # bool (n, q), True at tokens
    document_mask: Tensor  # bool (n, d), likewise


def cosine_matrix(
    query: Tensor, document: Tensor, query_mask: Tensor, document_mask: Tensor
) -> Tensor:
    """Cosine of each query vector (n, q, h) with each document vector (n, d, h) (CEDR eq. 1):
    float32 (n, q, d).

    0 where a mask, bool (n, q) or (n, d), is False.
    """
    query = query.float()
    document = document.float()
    query_norm = query.norm(dim=2).unsqueeze(2) + _LEAST_NORM
    document_norm = document.norm(dim=2).unsqueeze(1) + _LEAST_NORM
    # Half precision would blur exact matches.
    with torch.autocast(query.device.type, enabled=False):
        cosine: Tensor = torch.bmm(query, document.transpose(1, 2)) / (query_norm * document_norm)
    return cosine.masked_fill(~(query_mask.unsqueeze(2) & document_mask.unsqueeze(1)), 0.0)

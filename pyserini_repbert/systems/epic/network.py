"""EPIC's network: queries and passages as vectors over the vocabulary; inner products are scores.

Use it to rerank: passage vectors are computed once and pruned; a query costs one short forward pass
and a few sums. Every dimension is a term, so a score can be explained. Sean MacAvaney, Franco Maria
Nardini, Raffaele Perego, Nicola Tonellotto, Nazli Goharian, and Ophir Frieder: Expansion via
Prediction of Importance with Contextualization, 2020. https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.data.values import Choice
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.linear import linear
from pyserini_repbert.models.pretraining import MaskedLmPredictions

NAME = 'epic'
# Wordpieces kept of a query: the authors' code always uses this, regardless of its configuration.
MAX_QUERY_TOKENS = 500
# Wordpieces kept of a passage: the authors' setting. It is beyond BERT's positions, so long
# passages are read in chunks.
MAX_PASSAGE_TOKENS = 2000
QUERY_TYPE = 0
PASSAGE_TYPE = 1
TIED = {
    'cls.predictions.decoder.weight': 'bert.embeddings.word_embeddings.weight',
    'cls.predictions.decoder.bias': 'cls.predictions.bias',
}

# Values projected at a time on a CPU, whose second-level cache holds as many.
_CHUNK_VALUES = 1 << 18
# Values projected at a time on other devices: 1 GiB in float32.
_CHUNK_VALUES_DEVICE = 1 << 28
# From here on, softplus(x) equals x in float32.
_LINEAR_FROM = 60.0


class Variant(Choice, what='EPIC variant'):
    """The forms of EPIC that differ between its paper and its authors' code.

    psi is the projection to a term in eq. 4.

    Attributes
    ----------
    OFFICIAL : the published checkpoint was trained with it: psi is ln(1 + softplus(.)) of the
        masked-LM head's logit; importances and quality have biases
    PAPER_STRICT : psi is the word-embedding matrix times the contextual vector; nothing has a bias
        (eq. 1-4)
    PAPER_MLM_HEAD : psi is the masked-LM head's logit itself; biases as in OFFICIAL
    """

    OFFICIAL = 'official'
    PAPER_STRICT = 'paper_strict'
    PAPER_MLM_HEAD = 'paper_mlm_head'


class _MaskedLmHead(nn.Module):
    """The masked-LM head under the names of published checkpoints: `cls.predictions`."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.predictions = MaskedLmPredictions(config)


class Epic(nn.Module):
    """EPIC's model: `forward` gives contextual vectors, the other methods make weights of them.

    Parameters
    ----------
    config : the sizes of its BERT
    variant : which form of EPIC it computes, a `Variant`
    """

    def __init__(self, config: BertConfig, variant: Variant | str = Variant.OFFICIAL) -> None:
        super().__init__()
        self.variant = Variant(variant)
        self.bert = Bert(config)
        self.cls = _MaskedLmHead(config)
        self.query_importance = nn.Linear(config.hidden_size, 1)
        self.document_importance = nn.Linear(config.hidden_size, 1)
        self.document_quality = nn.Linear(config.hidden_size, 1)
        # Before the importances, as the authors train.
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The contextual vectors f_j: `Bert.forward` of `[CLS] text [SEP]`."""
        return self.bert(input_ids, token_type_ids, attention_mask)  # type: ignore[no-any-return]

    def query_importances(self, tokens: Tensor) -> Tensor:
        """w_q: ln(1 + softplus(theta1 f_i)) for query tokens (EPIC eq. 1).

        float32 (n,), from contextual vectors (n, h).
        """
        return importance(self._linear(self.query_importance, self.dropout(tokens)))

    def document_importances(self, tokens: Tensor) -> Tensor:
        """w_d: ln(1 + softplus(theta3 f_j)) for passage tokens (EPIC eq. 2).

        float32 (n,), from contextual vectors (n, h).
        """
        return importance(self._linear(self.document_importance, self.dropout(tokens)))

    def quality(self, cls_vectors: Tensor) -> Tensor:
        """phi(d): sigmoid(theta4 d_CLS) (EPIC eq. 3).

        float32 (n,), from the last layer's [CLS], (n, h).
        """
        return torch.sigmoid(self._linear(self.document_quality, cls_vectors))

    def document_vectors(
        self,
        tokens: Tensor,
        lengths: Sequence[int],
        cls_vectors: Tensor,
        terms: Tensor | None = None,
    ) -> Tensor:
        """phi_d: quality x max over the passage's tokens of importance x projection (EPIC eq. 4).

        float32 (n, |V|). The vocabulary is processed in chunks, so that the projections are never
        in memory all at once.

        Parameters
        ----------
        tokens : (total, h), the contextual vectors of all passages, one after the other; no [CLS],
            [SEP] or padding
        lengths : tokens of each of the n passages, at least 1
        cls_vectors : (n, h), the passages' [CLS] vectors
        terms : int64 (m,), the terms wanted, which gives (n, m); default: the whole vocabulary
        """
        if terms is not None and not len(terms):
            return cls_vectors.new_zeros((len(lengths), 0), dtype=torch.float32)
        importances = self.document_importances(tokens)[:, None]
        decoder: Tensor = self.bert.embeddings.word_embeddings.weight
        bias: Tensor = self.cls.predictions.bias
        if terms is not None:
            decoder = decoder[terms]
            bias = bias[terms]
        features = tokens
        if self.variant is not Variant.PAPER_STRICT:
            features = self.cls.predictions.transform(tokens)
        values = _CHUNK_VALUES if tokens.device.type == 'cpu' else _CHUNK_VALUES_DEVICE
        size = max(128, values // max(len(tokens), 1) // 64 * 64)
        maxima = []
        for start in range(0, len(decoder), size):
            chunk = slice(start, start + size)
            weighted = self._weighted(features, decoder[chunk], bias[chunk], importances)
            by_passage = torch.split(weighted, list(lengths))
            maxima.append(torch.stack([part.amax(dim=0) for part in by_passage]))
        return torch.cat(maxima, dim=1) * self.quality(cls_vectors)[:, None]

    def _weighted(
        self, features: Tensor, decoder: Tensor, bias: Tensor, importances: Tensor
    ) -> Tensor:
        """Importance x projection of each token to each of m terms, float32 (total, m).

        Without gradients, it is computed in place.
        """
        if self.variant is Variant.PAPER_STRICT:
            projected = linear(features, decoder, None).float()
        else:
            projected = linear(features, decoder, bias).float()
        if torch.is_grad_enabled():
            if self.variant is Variant.OFFICIAL:
                projected = importance(projected)
            return projected * importances
        if self.variant is Variant.OFFICIAL:
            projected = _importance_in_place(projected)
        return projected.mul_(importances)

    def _linear(self, layer: nn.Linear, vectors: Tensor) -> Tensor:
        """The layer's output, float32 (n,); without its bias in the variant PAPER_STRICT."""
        bias = None if self.variant is Variant.PAPER_STRICT else layer.bias
        return functional.linear(vectors, layer.weight, bias).squeeze(-1).float()


def importance(x: Tensor) -> Tensor:
    """ln(1 + softplus(x)), never negative (EPIC eq. 1): of the same shape."""
    return torch.log1p(functional.softplus(x))


def _importance_in_place(x: Tensor) -> Tensor:
    """`importance` within 3e-7, in half the time: exp and log are vectorised better than log1p.

    Without gradients.
    """
    softplus = torch.clamp(x, max=_LINEAR_FROM).exp_().add_(1).log_()
    return torch.maximum(softplus, x, out=softplus).add_(1).log_()

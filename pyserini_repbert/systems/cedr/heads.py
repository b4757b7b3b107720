"""How CEDR scores the similarities of every layer (CEDR sections 2.2 and 2.3), as in the released
code.

PACRR, n-gram convolutions (Hui et al., 2017): 32 filters each for 1-, 2- and 3-grams of query and
document tokens, the strongest filter at each document position, the k_max strongest positions for
each query token, no IDF. k_max is 2 there, 30 in the paper (CEDR section 3.1): set it before
training, since the first linear layer's size depends on it.

KNRM, kernel pooling (Xiong et al., 2017): means and widths of the kernels are trained, log counts
are neither clipped nor scaled, and the score is a linear combination without tanh.

DRMM, histograms (Guo et al., 2016): 11 bins, no IDF gate, and a sum over all 20 query positions,
padding included. Counting has no gradient: BERT learns through [CLS] only.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.network import (
    CedrRanker,
    Evidence,
    keep_columns,
)
from pyserini_repbert.systems.cedr.settings import CedrSettings

NGRAM_SIZES = (1, 2, 3)
N_FILTERS = 32
_PACRR_HIDDEN = 32


class NgramMatches(nn.Module):
    """The strongest matches of n-grams of one size."""

    def __init__(self, size: int, channels: int) -> None:
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(channels, N_FILTERS, size)

    def forward(self, similarity: Tensor, document_mask: Tensor, k: int, slots: int) -> Tensor:
        """The k strongest matches of each query position, strongest first: (n, slots, k).

        N-grams reach beyond the end of query and document into zeros. Matches that begin behind a
        document's end do not count, and a document of fewer than k tokens gets zeros for the rest
        (the released code raises an error). The matches of query positions from q on, which are
        empty, follow from the filters' biases.

        `similarity` is float32 (n, channels, q, d), `document_mask` bool (n, d), True at tokens.
        """
        beyond = self.size - 1
        q = similarity.shape[2]
        # The last row is for all empty query positions.
        padded = functional.pad(similarity, (0, beyond, 0, beyond + 1))
        strongest = (
            self.conv(padded).amax(dim=1).relu().masked_fill(~document_mask[:, None, :], 0.0)
        )
        best = functional.pad(strongest, (0, max(0, k - strongest.shape[2]))).topk(k, dim=2).values
        return torch.cat([best[:, :q], best[:, q:].expand(-1, slots - q, -1)], dim=1)


class CedrPacrr(CedrRanker):
    """PACRR on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.ngrams = nn.ModuleList(NgramMatches(size, self.channels) for size in NGRAM_SIZES)
        signals = settings.max_query_length * len(NGRAM_SIZES) * settings.k_max
        self.linear1 = nn.Linear(signals + self.cls_size, _PACRR_HIDDEN)
        self.linear2 = nn.Linear(_PACRR_HIDDEN, _PACRR_HIDDEN)
        self.linear3 = nn.Linear(_PACRR_HIDDEN, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """The strongest matches by query position, then n-gram size; then [CLS]: (n,
        max_query_length · 3 · k + h).
        """
        k = self.settings.k_max
        slots = self.settings.max_query_length
        per_length = [
            ngrams(evidence.similarity, evidence.document_mask, k, slots) for ngrams in self.ngrams
        ]
        return self._with_cls(torch.cat(per_length, dim=2).flatten(1), evidence.cls)

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        scores: Tensor = self.linear3(self.linear2(self.linear1(features).relu()).relu())
        return scores.squeeze(1)

    def _keep_channels(self, n_channels: int) -> None:
        for ngrams in self.ngrams:
            conv = cast(NgramMatches, ngrams).conv
            conv.weight = nn.Parameter(conv.weight[:, :n_channels].detach().clone())


def told_k_max(n_inputs: int, n_extra: int, max_query_length: int) -> int | None:
    """PACRR's k_max from the number of inputs of its first linear layer, `n_extra` not matches;
    None if none fits.
    """
    k_max, rest = divmod(n_inputs - n_extra, max_query_length * len(NGRAM_SIZES))
    return k_max if k_max >= 1 and not rest else None


# Initial, as in the released code.
MEANS = (
    -0.9,
    -0.7,
    -0.5,
    -0.3,
    -0.1,
    0.1,
    0.3,
    0.5,
    0.7,
    0.9,
    1.0,
)
WIDTHS = (0.1,) * 10 + (0.001,)
_LEAST_SUM = 1e-6  # added before the logarithm


class Kernel(nn.Module):
    """A Gaussian around `mu` of width `sigma`."""

    def __init__(self, mu: float, sigma: float) -> None:
        super().__init__()
        self.mu = nn.Parameter(torch.tensor(mu))
        self.sigma = nn.Parameter(torch.tensor(sigma))

    def forward(self, similarity: Tensor) -> Tensor:
        """exp(-(s - mu)² / (2 sigma²)) of each similarity s."""
        return torch.exp(-0.5 * ((similarity - self.mu) / self.sigma).square())


class KernelBank(nn.Module):
    """The kernels, summed over a document."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = nn.ModuleList(
            Kernel(mu, sigma) for mu, sigma in zip(MEANS, WIDTHS, strict=True)
        )

    def forward(self, similarity: Tensor, document_mask: Tensor) -> Tensor:
        """Soft counts of document tokens, (n, kernels, channels, q), from similarities (n,
        channels, q, d).
        """
        present = document_mask.to(similarity.dtype)[:, None, :, None]
        return torch.stack(
            [(kernel(similarity) @ present).squeeze(3) for kernel in self.kernels], dim=1
        )


class CedrKnrm(CedrRanker):
    """KNRM on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.kernels = KernelBank()
        self.combine = nn.Linear(len(MEANS) * self.channels + self.cls_size, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """Log soft counts summed over query tokens, kernel by kernel, then [CLS]: (n, kernels ·
        channels + h).
        """
        counts = self.kernels(evidence.similarity, evidence.document_mask)
        logs = (counts + _LEAST_SUM).log().masked_fill(~evidence.query_mask[:, None, None, :], 0.0)
        return self._with_cls(logs.sum(dim=3).flatten(1), evidence.cls)

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        scores: Tensor = self.combine(features)
        return scores.squeeze(1)

    @torch.no_grad()
    def begin_as_vanilla(self, weight: Tensor, bias: Tensor) -> None:
        """Make a joint model score as a Vanilla BERT with this head, weight (1, h) and bias
        (1,): kernels weigh 0.
        """
        self.combine.weight.zero_()
        self.combine.weight[:, -self.cls_size :] = weight
        self.combine.bias.copy_(bias)

    def _keep_channels(self, n_channels: int) -> None:
        keep_columns(self.combine, len(MEANS), self.channels, n_channels)


N_BINS = 11
_DRMM_HIDDEN = 5
_NUDGE = 1.000001  # puts a similarity of exactly 1 into the last bin (the released code)
_LEAST_COUNT = 1e-5  # added before the logarithm


def similarity_histogram(similarity: Tensor, query_mask: Tensor, document_mask: Tensor) -> Tensor:
    """How many document tokens fall into each bin of similarity to each query token: float32 (n,
    channels, q, 11).

    Ten bins of equal width cover [-1, 1), the eleventh counts similarities of 1. Within rounding
    (1e-6) of an edge, the bin depends on rounding, and so on the rest of the batch.

    `similarity` is float32 (n, channels, q, d). The masks, bool (n, q) and (n, d), are True at
    tokens; only pairs of tokens count.
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
        counts = similarity_histogram(
            evidence.similarity.detach(), evidence.query_mask, evidence.document_mask
        )
        if self.settings.pad_query:
            counts = functional.pad(
                counts, (0, 0, 0, self.settings.max_query_length - counts.shape[2])
            )
        logs = (counts + _LEAST_COUNT).log().permute(0, 2, 3, 1).flatten(2)
        return self._with_cls(logs, evidence.cls.unsqueeze(1).expand(-1, logs.shape[1], -1))

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """The sum over query positions."""
        terms: Tensor = self.hidden_2(self.hidden_1(features).relu()).squeeze(2)
        if not self.settings.pad_query:
            terms = terms.masked_fill(~evidence.query_mask, 0.0)
        return terms.sum(dim=1)

    def _keep_channels(self, n_channels: int) -> None:
        keep_columns(self.hidden_1, N_BINS, self.channels, n_channels)

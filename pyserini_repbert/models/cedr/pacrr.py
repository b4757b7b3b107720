"""CEDR-PACRR: n-gram convolutions (Hui et al., 2017) over the similarities of every layer (CEDR sections 2.2 and 2.3).

As released: 32 filters for 1- to 3-grams of query and document tokens, the strongest filter at each place, the k_max
strongest places for each query token, no IDF. k_max is 2 there, 30 in the paper: set it before training, since the
size of the first linear layer follows from it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker
from pyserini_repbert.models.cedr.settings import CedrSettings
from pyserini_repbert.models.cedr.similarity import Evidence

NGRAM_SIZES = (1, 2, 3)
N_FILTERS = 32
_HIDDEN = 32


class NgramMatches(nn.Module):
    """The strongest matches of n-grams of one size."""

    def __init__(self, size: int, channels: int) -> None:
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(channels, N_FILTERS, size)

    def forward(self, similarity: Tensor, document_mask: Tensor, k: int, slots: int) -> Tensor:
        """The k best places of each query token, best first: (n, slots, k) from similarities (n, channels, q, d).

        N-grams reach over the end of query and document into zeros. Places past a document's end do not count: a
        document of fewer than k places is filled up with zeros (the released code raises an error). The matches of a
        query's empty places follow from the filters' biases.
        """
        beyond = self.size - 1
        q = similarity.shape[2]
        padded = functional.pad(similarity, (0, beyond, 0, beyond + 1))  # the last row stands for all empty places
        strongest = self.conv(padded).amax(dim=1).relu().masked_fill(~document_mask[:, None, :], 0.0)
        best = functional.pad(strongest, (0, max(0, k - strongest.shape[2]))).topk(k, dim=2).values
        return torch.cat([best[:, :q], best[:, q:].expand(-1, slots - q, -1)], dim=1)

    def first_channels(self, n_channels: int) -> NgramMatches:
        """The same filters over the first channels only."""
        smaller = NgramMatches(self.size, n_channels).to(self.conv.weight.device)
        smaller.load_state_dict({'conv.weight': self.conv.weight[:, :n_channels], 'conv.bias': self.conv.bias})
        return smaller


class CedrPacrr(CedrRanker):
    """PACRR on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.ngrams = nn.ModuleList(NgramMatches(size, self.channels) for size in NGRAM_SIZES)
        signals = settings.max_query_length * len(NGRAM_SIZES) * settings.k_max
        self.linear1 = nn.Linear(signals + self.cls_size, _HIDDEN)
        self.linear2 = nn.Linear(_HIDDEN, _HIDDEN)
        self.linear3 = nn.Linear(_HIDDEN, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """The best matches, query token by query token, then n-gram size, then [CLS]: (n, q · 3 · k_max + h)."""
        k, slots = self.settings.k_max, self.settings.max_query_length
        found = [ngrams(evidence.similarity, evidence.document_mask, k, slots) for ngrams in self._ngrams()]
        return self._with_cls(torch.cat(found, dim=2).flatten(1), evidence.cls)

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,)."""
        scores: Tensor = self.linear3(self.linear2(self.linear1(features).relu()).relu())
        return scores.squeeze(1)

    def _keep_channels(self, n_channels: int) -> None:
        self.ngrams = nn.ModuleList(ngrams.first_channels(n_channels) for ngrams in self._ngrams())

    def _ngrams(self) -> list[NgramMatches]:
        return [module for module in self.ngrams if isinstance(module, NgramMatches)]


def told_k_max(n_inputs: int, n_extra: int, max_query_length: int) -> int | None:
    """PACRR's k_max from the inputs of its first dense layer, `n_extra` of which are not matches; None if none fits."""
    k_max, rest = divmod(n_inputs - n_extra, max_query_length * len(NGRAM_SIZES))
    return k_max if k_max >= 1 and not rest else None

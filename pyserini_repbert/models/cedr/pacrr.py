"""CEDR-PACRR: n-gram convolutions (Hui et al., 2017) over the similarities of every layer (CEDR sections 2.2 and 2.3).

As in the released code: 32 filters each for 1-, 2- and 3-grams of query and document tokens, the strongest filter at
each document position, the k_max strongest positions for each query token, no IDF. k_max is 2 there, 30 in the paper
(CEDR section 3.1): set it before training, since the size of the first linear layer depends on it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker, Evidence
from pyserini_repbert.models.cedr.settings import CedrSettings

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

        N-grams reach beyond the end of query and document into zeros. Matches that begin behind a document's end do not
        count, and a document of fewer than k tokens gets zeros for the rest (the released code raises an error). The
        matches of empty query positions follow from the filters' biases.

        Parameters
        ----------
        similarity : float32 (n, channels, q, d)
        document_mask : bool (n, d), True at tokens
        k : matches kept
        slots : query positions, at least q; those from q on are empty
        """
        beyond = self.size - 1
        q = similarity.shape[2]
        padded = functional.pad(similarity, (0, beyond, 0, beyond + 1))  # the last row is for all empty query positions
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
        self.linear1 = nn.Linear(signals + self.cls_size, _PACRR_HIDDEN)
        self.linear2 = nn.Linear(_PACRR_HIDDEN, _PACRR_HIDDEN)
        self.linear3 = nn.Linear(_PACRR_HIDDEN, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """The strongest matches by query position, then by n-gram size; then [CLS]: (n, q · 3 · k_max + h).

        q is `max_query_length`.
        """
        k, slots = self.settings.k_max, self.settings.max_query_length
        per_length = [ngrams(evidence.similarity, evidence.document_mask, k, slots) for ngrams in self._ngrams()]
        return self._with_cls(torch.cat(per_length, dim=2).flatten(1), evidence.cls)

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,)."""
        scores: Tensor = self.linear3(self.linear2(self.linear1(features).relu()).relu())
        return scores.squeeze(1)

    def _keep_channels(self, n_channels: int) -> None:
        self.ngrams = nn.ModuleList(ngrams.first_channels(n_channels) for ngrams in self._ngrams())

    def _ngrams(self) -> list[NgramMatches]:
        return [module for module in self.ngrams if isinstance(module, NgramMatches)]


def told_k_max(n_inputs: int, n_extra: int, max_query_length: int) -> int | None:
    """PACRR's k_max from the number of inputs of its first linear layer, `n_extra` not matches; None if none fits."""
    k_max, rest = divmod(n_inputs - n_extra, max_query_length * len(NGRAM_SIZES))
    return k_max if k_max >= 1 and not rest else None

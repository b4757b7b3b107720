"""CEDR-KNRM: kernel pooling (Xiong et al., 2017) over the similarities of every layer (CEDR sections 2.2 and 2.3).

As in the released code: means and widths of the kernels are trained, log counts are neither clipped nor scaled, and the
score is a linear combination without tanh.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.ranker import CedrRanker, Evidence, keep_columns
from pyserini_repbert.models.cedr.settings import CedrSettings

MEANS = (-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # initial, as in the released code
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
        self.kernels = nn.ModuleList(Kernel(mu, sigma) for mu, sigma in zip(MEANS, WIDTHS, strict=True))

    def forward(self, similarity: Tensor, document_mask: Tensor) -> Tensor:
        """Soft counts of document tokens, (n, kernels, channels, q), from similarities (n, channels, q, d)."""
        present = document_mask.to(similarity.dtype)[:, None, :, None]
        return torch.stack([(kernel(similarity) @ present).squeeze(3) for kernel in self.kernels], dim=1)


class CedrKnrm(CedrRanker):
    """KNRM on BERT's similarities."""

    def __init__(self, config: BertConfig, settings: CedrSettings) -> None:
        super().__init__(config, settings)
        self.kernels = KernelBank()
        self.combine = nn.Linear(len(MEANS) * self.channels + self.cls_size, 1)

    def features(self, evidence: Evidence) -> Tensor:
        """Log soft counts summed over query tokens, kernel by kernel, then [CLS]: (n, kernels · channels + h)."""
        counts = self.kernels(evidence.similarity, evidence.document_mask)
        logs = (counts + _LEAST_SUM).log().masked_fill(~evidence.query_mask[:, None, None, :], 0.0)
        return self._with_cls(logs.sum(dim=3).flatten(1), evidence.cls)

    def score_features(self, features: Tensor, evidence: Evidence) -> Tensor:
        """Scores (n,)."""
        scores: Tensor = self.combine(features)
        return scores.squeeze(1)

    @torch.no_grad()
    def begin_as_vanilla(self, weight: Tensor, bias: Tensor) -> None:
        """Take over a Vanilla BERT's head, weight (1, h) and bias (1,), with weight 0 for kernels: the same scores.

        Only for a joint model.
        """
        self.combine.weight.zero_()
        self.combine.weight[:, -self.cls_size :] = weight
        self.combine.bias.copy_(bias)

    def _keep_channels(self, n_channels: int) -> None:
        self.combine = keep_columns(self.combine, len(MEANS), self.channels, n_channels)

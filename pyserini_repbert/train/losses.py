"""The training losses of the four papers: scores or logits in, a scalar out. Each is a mean over its batch."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_repbert.errors import InputError

MARGIN = 1.0  # RepBERT eq. 4; also of the hinge


class PairLoss(StrEnum):
    """A loss over the scores of a relevant and a non-relevant text.

    CROSS_ENTROPY: -log softmax (EPIC section 3; CEDR section 3.1 for Vanilla BERT). HINGE: max(0, 1 - difference) (CEDR
    section 3.1). ONE_MINUS_SOFTMAX: 1 - softmax, what the released code of EPIC and CEDR trains with.
    """

    CROSS_ENTROPY = 'cross_entropy'
    HINGE = 'hinge'
    ONE_MINUS_SOFTMAX = 'one_minus_softmax'


def multi_label_margin(similarities: Tensor, positive: Tensor) -> Tensor:
    """RepBERT's loss over in-batch negatives (RepBERT eq. 4), averaged over rows as its code does.

    A row's loss is the sum of max(0, 1 - (s_i - s_j)) over its positives i and negatives j, divided by the number of
    all its passages. A row without positives, or without negatives, has loss 0 and counts in the average.

    Parameters
    ----------
    similarities : (rows, passages), the inner product of each row's query with each passage in the batch
    positive : bool (rows, passages), whether the passage is relevant to the query; a passage that comes twice counts
        twice

    Returns
    -------
    float32 scalar
    """
    if similarities.shape != positive.shape or similarities.dim() != 2:
        raise InputError(
            f'similarities {tuple(similarities.shape)} and labels {tuple(positive.shape)}: '
            'two matrices (rows, passages) of one shape were expected'
        )
    columns = torch.arange(positive.shape[1], device=positive.device).expand(positive.shape)
    order = positive.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    targets = torch.where(positive.gather(1, order), columns.gather(1, order), -1)
    return functional.multilabel_margin_loss(similarities.float(), targets)


def anchored(vectors: Tensor, anchors: Tensor) -> Tensor:
    """Mean squared distance between vectors, in units of their mean length, and the unit vectors along the anchors.

    It is 0 where all vectors are equally long and each points where its anchor does: their inner products then rank
    as the cosine of the anchors. The length itself is free.

    Parameters
    ----------
    vectors, anchors : (n, h); no gradient reaches the anchors

    Returns
    -------
    float32 scalar
    """
    vectors = vectors.float()
    length = vectors.detach().norm(dim=1).mean().clamp_min(torch.finfo(torch.float32).tiny)
    targets = functional.normalize(anchors.detach().float(), dim=1)
    away: Tensor = (vectors / length - targets).square().sum(dim=1).mean()
    return away


def relevance_cross_entropy(logits: Tensor, relevant: Tensor) -> Tensor:
    """Mean of -log p for relevant inputs and of -log(1 - p) for the others.

    With monoBERT's logits this is Multi-Stage eq. 1; with those of duoBERT, where an input is relevant if its first
    candidate is the relevant one, eq. 2.

    Parameters
    ----------
    logits : (n, 2), index 1 is "relevant"; or (n, 1), the log-odds of relevance
    relevant : bool or int64 (n,)

    Returns
    -------
    float32 scalar
    """
    if logits.dim() != 2 or logits.shape[1] not in (1, 2) or relevant.shape != logits.shape[:1]:
        raise InputError(
            f'logits {tuple(logits.shape)} and labels {tuple(relevant.shape)}: (n, 2) or (n, 1), and (n,) were expected'
        )
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits.float().squeeze(1), relevant.float())
    return functional.cross_entropy(logits.float(), relevant.long())


def pair_loss(positive: Tensor, negative: Tensor, kind: PairLoss | str) -> Tensor:
    """Mean loss over pairs of a relevant and a non-relevant text, see `PairLoss`.

    Parameters
    ----------
    positive, negative : scores (n,) of the relevant and of the non-relevant text of each pair

    Returns
    -------
    float32 scalar
    """
    difference = positive.float() - negative.float()
    if kind == PairLoss.CROSS_ENTROPY:
        return functional.softplus(-difference).mean()
    if kind == PairLoss.HINGE:
        return functional.relu(MARGIN - difference).mean()
    if kind == PairLoss.ONE_MINUS_SOFTMAX:
        return torch.sigmoid(-difference).mean()
    raise InputError(f"loss '{kind}' is unknown: expected one of {', '.join(PairLoss)}")

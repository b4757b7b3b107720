"""The training losses of the four papers, and those over groups of candidates and from a teacher's
scores.

Each loss takes scores or logits and returns a float32 scalar, the mean over its batch. Where
stated, it is 0 for an empty batch.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional

MARGIN = 1.0  # of RepBERT eq. 4, and of the hinge loss


class PairLoss(StrEnum):
    """A loss over the scores of a relevant and a non-relevant text.

    CROSS_ENTROPY: -log softmax (EPIC section 3; CEDR section 3.1 for Vanilla BERT). HINGE: max(0, 1
    - difference) (CEDR section 3.1). ONE_MINUS_SOFTMAX: 1 - softmax, what the released code of EPIC
      and CEDR trains with.
    """

    CROSS_ENTROPY = 'cross_entropy'
    HINGE = 'hinge'
    ONE_MINUS_SOFTMAX = 'one_minus_softmax'


def multi_label_margin(similarities: Tensor, positive: Tensor) -> Tensor:
    """RepBERT's loss over in-batch negatives (RepBERT eq. 4), averaged over rows as its code does.

    A row's loss is the sum of max(0, 1 - (s_i - s_j)) over its positives i and negatives j, divided
    by the number of passages. A row without positives, or without negatives, has loss 0 and counts
    in the average. For no rows it is 0.

    `similarities`, floating (rows, passages), are the inner products of each row's query and each
    passage in the batch. `positive`, bool (rows, passages), says which passages are relevant to the
    row's query; a passage that is in the batch twice counts twice.
    """
    if not len(similarities):
        return similarities.float().sum()
    columns = torch.arange(positive.shape[1], device=positive.device).expand(positive.shape)
    order = positive.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    targets = torch.where(positive.gather(1, order), columns.gather(1, order), -1)
    return functional.multilabel_margin_loss(similarities.float(), targets)


def relevance_cross_entropy(logits: Tensor, relevant: Tensor) -> Tensor:
    """Mean of -log p for relevant inputs and of -log(1 - p) for the others.

    With monoBERT's logits this is Multi-Stage eq. 1, with duoBERT's eq. 2, both as means instead of
    sums. duoBERT's input is relevant if its first candidate is. `logits` are floating (n, 2), index
    1 is "relevant"; `relevant` is bool or int64 (n,), or floating (n,): the probability of
    relevance that a teacher gives.
    """
    if relevant.is_floating_point():
        return functional.cross_entropy(
            logits.float(), torch.stack([1 - relevant, relevant], dim=1).float()
        )
    return functional.cross_entropy(logits.float(), relevant.long())


def pair_loss(positive: Tensor, negative: Tensor, kind: PairLoss) -> Tensor:
    """Mean loss over pairs of a relevant and a non-relevant text, from their scores, floating
    (n,) each.
    """
    difference = positive.float() - negative.float()
    if kind == PairLoss.CROSS_ENTROPY:
        return functional.softplus(-difference).mean()
    if kind == PairLoss.HINGE:
        return functional.relu(MARGIN - difference).mean()
    return torch.sigmoid(-difference).mean()


def localized_contrastive(scores: Tensor, present: Tensor) -> Tensor:
    """Localized contrastive estimation: -log softmax of a group's relevant candidate, which comes
    first.

    Gao, Dai, Callan, "Rethink Training of BERT Rerankers in Multi-Stage Retrieval Pipeline" (ECIR
    2021), eq. 3. Its other candidates are drawn from the first stage's hits. `scores` are floating
    (groups, candidates); `present`, bool, is False if a group has fewer candidates. For no
    groups the loss is 0.
    """
    if not len(scores):
        return scores.float().sum()
    logits = scores.float().masked_fill(~present, -torch.inf)
    return (torch.logsumexp(logits, dim=1) - logits[:, 0]).mean()


def in_batch_contrastive(scores: Tensor, own: Tensor, relevant: Tensor) -> Tensor:
    """-log softmax of each row's own relevant passage, against all others in the batch.

    Khattab et al., "Relevance-guided Supervision for OpenQA with ColBERT" (TACL 2021), and
    Santhanam et al., "ColBERTv2" (NAACL 2022), section 3.2. Further relevant passages of a row are
    left out. For no rows the loss is 0.

    Parameters
    ----------
    scores : of each row's query for each passage in the batch, floating (rows, passages)
    own : the column of each row's own relevant passage, int64 (rows,)
    relevant : which passages are relevant to the row's query, bool (rows, passages)
    """
    if not len(scores):
        return scores.float().sum()
    others = relevant.scatter(1, own[:, None], value=False)
    return functional.cross_entropy(scores.float().masked_fill(others, -torch.inf), own)


def listwise_divergence(scores: Tensor, teacher: Tensor, present: Tensor) -> Tensor:
    """Kullback-Leibler divergence of a group's softmax from the teacher's, averaged over groups.

    Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network" (2015), over the
    candidates of a query as in Santhanam et al., "ColBERTv2" (NAACL 2022), section 3.2. It is 0 if
    all differences of scores equal the teacher's. Both are logits, floating (groups, candidates);
    `present`, bool, is False if a group has fewer candidates.
    """
    log_shares = torch.log_softmax(scores.float().masked_fill(~present, -torch.inf), dim=1)
    aim = torch.log_softmax(teacher.float().masked_fill(~present, -torch.inf), dim=1)
    difference = (aim - log_shares).masked_fill(~present, 0.0)  # not infinity less infinity
    return (aim.exp() * difference).sum(dim=1).mean()

"""Turn the vectors of a text's tokens into one vector.

The methods of sentence-transformers (Reimers and Gurevych, 2019, section 3). RepBERT has
the mean (eq. 2). https://arxiv.org/abs/1908.10084
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from pyserini_repbert.models.precision import on_device


def mean_of_tokens(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over all attended tokens, special tokens included: (n, h).

    Parameters
    ----------
    hidden : the vectors of tokens, float32 (n, length, h)
    mask : bool (n, length), True if there is a token; None if no sequence is padded
    """
    if mask is None:
        return hidden.mean(dim=1)
    weights = on_device(mask, hidden.device).to(hidden.dtype)
    return torch.einsum('nlh,nl->nh', hidden, weights) / weights.sum(dim=1, keepdim=True)


def sum_by_root(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The sum over all attended tokens, divided by the square root of their number: (n, h).

    Takes the parameters of `mean_of_tokens`.
    """
    counts = torch.tensor(float(hidden.shape[1]), device=hidden.device)
    if mask is not None:
        counts = on_device(mask, hidden.device).sum(dim=1, keepdim=True)
    return mean_of_tokens(hidden, mask) * counts.to(hidden.dtype).sqrt()


def first_of_tokens(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The vector of the first token, [CLS]: (n, h).

    Takes the parameters of `mean_of_tokens`.
    """
    return hidden[:, 0]


def maximum_of_tokens(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The maximum over all attended tokens, dimension by dimension: (n, h).

    Takes the parameters of `mean_of_tokens`.
    """
    if mask is None:
        return hidden.amax(dim=1)
    is_token = on_device(mask, hidden.device).to(torch.bool)
    return hidden.masked_fill(~is_token[:, :, None], -torch.inf).amax(dim=1)


# By their names in sentence-transformers.
POOLINGS: Mapping[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    'cls': first_of_tokens,
    'max': maximum_of_tokens,
    'mean': mean_of_tokens,
    'mean_sqrt_len_tokens': sum_by_root,
}

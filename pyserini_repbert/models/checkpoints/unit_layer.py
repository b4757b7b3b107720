"""A last layer of BERT that gives all texts vectors of equal length, for a base that was trained for cosine.

RepBERT ranks by the inner product of mean vectors (RepBERT eq. 2-3). Where a base was trained for cosine, the direction
of a mean vector is what it learnt, and its length is noise. The layer attends to all tokens alike and adds their mean
vector, times ten, to each; layer normalisation then makes the sums equally long. The mean of the output has the
direction of the input's mean, less its average over dimensions, which layer normalisation takes away: the inner product
ranks as cosine did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

UNIT_LAYER = 'unit_layer'  # in config.json: whether the last layer is a unit layer, which the base lacks
MEAN_OVER_TOKEN = 10.0  # lengths of mean vectors then vary by half a percent, and tokens still differ


def with_unit_layer(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """A BERT's weights, with those of a unit layer, float32, if its config.json names one and they are missing.

    Queries are 0 and keys the identity, so that attention is uniform until queries are trained.
    """
    if not config.get(UNIT_LAYER):
        return dict(tensors)
    import torch

    from pyserini_repbert.models.bert_config import BertConfig

    sizes = BertConfig.from_dict(config)
    size, inner = sizes.hidden_size, sizes.intermediate_size
    zero, one, identity = torch.zeros(size), torch.ones(size), torch.eye(size)
    layer = {
        'attention.self.query': (torch.zeros(size, size), zero),
        'attention.self.key': (identity, zero),
        'attention.self.value': (identity, zero),
        'attention.output.dense': (MEAN_OVER_TOKEN * identity, zero),
        'attention.output.LayerNorm': (one, zero),
        'intermediate.dense': (torch.zeros(inner, size), torch.zeros(inner)),
        'output.dense': (torch.zeros(size, inner), zero),
        'output.LayerNorm': (one, zero),
    }
    stem = f'bert.encoder.layer.{sizes.num_hidden_layers - 1}'
    named: dict[str, Tensor] = {}
    for name, (weight, bias) in layer.items():
        named |= {f'{stem}.{name}.weight': weight.clone(), f'{stem}.{name}.bias': bias.clone()}
    return {**named, **tensors}

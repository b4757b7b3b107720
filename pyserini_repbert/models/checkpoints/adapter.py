"""Merging a PEFT LoRA adapter into the weights that it adapts (Hu et al., 2021, section 4.1): W + scale * B A."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.data.json_values import read_object
from pyserini_repbert.errors import DamagedFileError

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = 'base_model.model.'  # of tensor names in PEFT's files
UNIT_LAYER = 'unit_layer'  # in config.json: whether the last layer is a unit layer, which the base lacks
MEAN_OVER_TOKEN = 10.0  # lengths of mean vectors then vary by half a percent, and tokens still differ
_UNSUPPORTED = ('use_dora', 'fan_in_fan_out', 'lora_bias', 'rank_pattern', 'alpha_pattern')


def scale_of(config_path: Path) -> float:
    """The factor of an adapter's low-rank updates: alpha / r, or alpha / sqrt(r) with rsLoRA.

    Raises DamagedFileError for an adapter that is not a plain LoRA.
    """
    config = read_object(config_path)
    try:
        scale = config['lora_alpha'] / (math.sqrt(config['r']) if config.get('use_rslora') else config['r'])
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise DamagedFileError(f'{config_path} is not the configuration of a LoRA adapter ({error!r})') from error
    used = [name for name in _UNSUPPORTED if config.get(name)]
    if used:
        raise DamagedFileError(f'{config_path} uses {", ".join(used)}: only plain LoRA adapters are supported')
    return float(scale)


def merged(base: dict[str, Tensor], adapter: dict[str, Tensor], config_path: Path) -> dict[str, Tensor]:
    """The base's tensors with the adapter's low-rank updates added, and its other tensors (heads) in their place.

    The float32 tensors of `base` are changed in place, so that memory holds the weights once.

    Raises DamagedFileError for an adapter that is not a plain LoRA, or that adapts a tensor that the base lacks.
    """
    scale = scale_of(config_path)
    result = dict(base)
    for name, value in adapter.items():
        target = name.removeprefix(PREFIX)
        if target.endswith('.lora_A.weight'):
            stem = target.removesuffix('.lora_A.weight')
            other = adapter.get(f'{PREFIX}{stem}.lora_B.weight')
            if f'{stem}.weight' not in base or other is None:
                raise DamagedFileError(f'{config_path.parent}: the adapter of {stem} does not fit its base')
            result[f'{stem}.weight'] = base[f'{stem}.weight'].float().add_(scale * (other.float() @ value.float()))
        elif not target.endswith('.lora_B.weight'):
            result[target] = value
        elif name.replace('.lora_B.', '.lora_A.') not in adapter:
            raise DamagedFileError(f'{config_path.parent}: {target} has no lora_A beside it: fetch the adapter again')
    return result


def with_unit_layer(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """A BERT's weights, with those of a unit layer, float32, if its config.json names one and they are missing.

    RepBERT ranks by the inner product of mean vectors (RepBERT eq. 2-3). Where a base was trained for cosine, the
    direction of a mean vector is what it learnt, and its length is noise. A unit layer attends to all tokens alike
    (queries are 0 and keys the identity until queries are trained) and adds their mean vector, times ten, to each;
    layer normalisation then makes the sums equally long. The mean of the output has the direction of the input's mean,
    less its average over dimensions, which layer normalisation takes away: the inner product ranks as cosine did.
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

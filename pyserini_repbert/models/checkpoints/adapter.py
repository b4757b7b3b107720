"""Merging a PEFT LoRA adapter into the weights that it adapts (Hu et al., 2021, section 4.1): W + scale * B A."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.data.json_values import read_object
from pyserini_repbert.errors import DamagedFileError

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = 'base_model.model.'  # of tensor names in PEFT's files
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

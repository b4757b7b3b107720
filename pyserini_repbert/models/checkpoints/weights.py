"""Reading weights, and merging a PEFT LoRA adapter into them (Hu et al., 2021, section 4.1): W +
scale * B A.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = 'base_model.model.'  # of tensor names in PEFT's files
_LORA_A = '.lora_A.weight'
_LORA_B = '.lora_B.weight'
# In config.json: whether the last layer is a unit layer, which the base lacks.
UNIT_LAYER = 'unit_layer'
# Lengths of mean vectors then vary by half a percent, and tokens still differ.
MEAN_OVER_TOKEN = 10.0
_SIZE_BYTES = 8  # of the header's size, with which a safetensors file begins
# PyTorch's dtypes by their names in safetensors' format
_DTYPES = {
    'F64': 'float64',
    'F32': 'float32',
    'F16': 'float16',
    'BF16': 'bfloat16',
    'F8_E4M3': 'float8_e4m3fn',
    'F8_E5M2': 'float8_e5m2',
    'I64': 'int64',
    'I32': 'int32',
    'I16': 'int16',
    'I8': 'int8',
    'U8': 'uint8',
    'BOOL': 'bool',
}
_UNSUPPORTED = ('use_dora', 'fan_in_fan_out', 'lora_bias', 'rank_pattern', 'alpha_pattern')


def read_weights(file: Path, mapped: str | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, each in memory of its own, which the caller may
    change or keep.

    Tensors whose names end with `mapped` are mapped instead: only rows that are read take memory.
    This is for tables that are looked up, not multiplied. Changes to them are copied, and leave the
    file as it is.

    The package safetensors maps all tensors. Rounding may depend on a matrix's alignment, which is
    arbitrary in a mapped file, so each would have to be copied, and memory would hold the weights
    twice meanwhile. https://huggingface.co/docs/safetensors, "Format"
    """
    import torch
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework='numpy'):  # checks the header against the file's size
            pass
    except SafetensorError as error:
        raise DamagedFileError(
            f'{file} is damaged ({error}): fetch the checkpoint again'
        ) from error
    tensors: dict[str, Tensor] = {}
    with file.open('rb') as stream:
        size = int.from_bytes(stream.read(_SIZE_BYTES), 'little')
        header = json.loads(stream.read(size))
        header.pop('__metadata__', None)
        data_start = _SIZE_BYTES + size
        for name, entry in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
            if entry['dtype'] not in _DTYPES:
                raise DamagedFileError(
                    f'{file}: {name} has type {entry["dtype"]}, expected {", ".join(_DTYPES)}'
                )
            first, last = entry['data_offsets']
            n_bytes = last - first
            start = data_start + first
            if mapped is not None and name.endswith(mapped) and n_bytes:
                raw = torch.from_numpy(np.memmap(file, np.uint8, 'c', start, (n_bytes,)))
            else:
                raw = torch.empty(n_bytes, dtype=torch.uint8)
                stream.seek(start)
                stream.readinto(raw.numpy().data)
            dtype = getattr(torch, _DTYPES[entry['dtype']])
            tensors[name] = raw.view(dtype).reshape(entry['shape'])
    return tensors


def scale_of(config_path: Path) -> float:
    """The factor of an adapter's low-rank updates: alpha / r, or alpha / sqrt(r) with rsLoRA."""
    config = read_object(config_path)
    try:
        divisor = config['r']
        if config.get('use_rslora'):
            divisor = math.sqrt(divisor)
        scale = config['lora_alpha'] / divisor
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise DamagedFileError(
            f'{config_path} is not the configuration of a LoRA adapter ({error!r})'
        ) from error
    used = [name for name in _UNSUPPORTED if config.get(name)]
    if used:
        raise DamagedFileError(
            f'{config_path} uses {", ".join(used)}: only plain LoRA adapters are supported'
        )
    return float(scale)


def merged(
    base: dict[str, Tensor], adapter: dict[str, Tensor], config_path: Path
) -> dict[str, Tensor]:
    """The base's tensors with the adapter's low-rank updates added, and its other tensors (heads)
    in their place.

    The float32 tensors of `base` are changed in place, so that memory holds the weights once.
    """
    scale = scale_of(config_path)
    result = dict(base)
    for name, value in adapter.items():
        target = name.removeprefix(PREFIX)
        if target.endswith(_LORA_A):
            stem = target.removesuffix(_LORA_A)
            weight = base.get(f'{stem}.weight')
            other = adapter.get(f'{PREFIX}{stem}{_LORA_B}')
            if weight is None or other is None:
                raise DamagedFileError(
                    f'{config_path.parent}: the adapter of {stem} does not fit its base'
                )
            update = scale * (other.float() @ value.float())
            result[f'{stem}.weight'] = weight.float().add_(update)
        elif not target.endswith(_LORA_B):
            result[target] = value
        elif name.replace('.lora_B.', '.lora_A.') not in adapter:
            raise DamagedFileError(
                f'{config_path.parent}: {target} has no lora_A beside it: fetch the adapter again'
            )
    return result


def with_unit_layer(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """A BERT's weights, with those of a unit layer, float32, if its config.json names one and they
    are missing.

    RepBERT ranks by the inner product of mean vectors (RepBERT eq. 2-3). Where a base was trained
    for cosine, the direction of a mean vector is what it learnt, and its length is noise. A unit
    layer attends to all tokens alike (queries are 0 and keys the identity until queries are
    trained) and adds their mean vector, times ten, to each; layer normalisation then makes the sums
    equally long. The mean of the output has the direction of the input's mean, less its average
    over dimensions, which layer normalisation takes away: the inner product ranks as cosine did.

    Raises DamagedFileError for sizes that the base does not have.
    """
    if not config.get(UNIT_LAYER):
        return dict(tensors)
    import torch

    from pyserini_repbert.models.bert_config import BertConfig

    sizes = BertConfig.from_dict(config)
    size = sizes.hidden_size
    inner = sizes.intermediate_size
    longest = max((max(value.shape, default=0) for value in tensors.values()), default=0)
    if max(size, inner) > longest:
        raise DamagedFileError(
            f'config.json names a hidden_size of {size} and an intermediate_size of {inner}, the '
            f'weights have at most {longest} rows or columns: fetch the checkpoint again'
        )
    weights = {
        'attention.self.query': torch.zeros(size, size),
        'attention.self.key': torch.eye(size),
        'attention.self.value': torch.eye(size),
        'attention.output.dense': MEAN_OVER_TOKEN * torch.eye(size),
        'attention.output.LayerNorm': torch.ones(size),
        'intermediate.dense': torch.zeros(inner, size),
        'output.dense': torch.zeros(size, inner),
        'output.LayerNorm': torch.ones(size),
    }
    stem = f'bert.encoder.layer.{sizes.num_hidden_layers - 1}'
    unit_layer: dict[str, Tensor] = {}
    for name, weight in weights.items():
        unit_layer[f'{stem}.{name}.weight'] = weight
        unit_layer[f'{stem}.{name}.bias'] = torch.zeros(len(weight))
    return {**unit_layer, **tensors}

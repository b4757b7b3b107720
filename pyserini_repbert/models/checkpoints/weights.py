"""Reading weights, and merging a PEFT LoRA adapter into them (Hu et al., 2021, section 4.1): W +
scale * B A.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
# NumPy's dtypes of weights; numbers in bfloat16 are the upper halves of numbers in float32.
_NUMPY_DTYPES = {'F64': np.float64, 'F32': np.float32, 'F16': np.float16, 'BF16': np.uint16}
_UNSUPPORTED = ('use_dora', 'fan_in_fan_out', 'lora_bias', 'rank_pattern', 'alpha_pattern')


# A tensor of PyTorch, or an array of NumPy.
Weight = TypeVar('Weight', bound=Any)


@dataclass(frozen=True)
class _Stored:
    """A tensor in a safetensors file: its name, its type there, its shape, and its bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    n_bytes: int


def _stored_tensors(file: Path) -> Iterator[_Stored]:
    """The tensors of a safetensors file, in the order of their bytes.

    Raises DamagedFileError for another file, and for an unknown type.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework='numpy'):  # checks the header against the file's size
            pass
    except SafetensorError as error:
        raise DamagedFileError(
            f'{file} is damaged ({error}): fetch the checkpoint again'
        ) from error
    with file.open('rb') as stream:
        size = int.from_bytes(stream.read(_SIZE_BYTES), 'little')
        header = json.loads(stream.read(size))
    header.pop('__metadata__', None)
    for name, entry in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
        if entry['dtype'] not in _DTYPES:
            raise DamagedFileError(
                f'{file}: {name} has type {entry["dtype"]}, expected {", ".join(_DTYPES)}'
            )
        first, last = entry['data_offsets']
        start = _SIZE_BYTES + size + first
        yield _Stored(name, entry['dtype'], tuple(entry['shape']), start, last - first)


def read_arrays(file: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file that are numbers with a fraction, by name, in float32.

    float32 numbers stay in their file: only those that are read take memory. Raises the errors of
    `read_weights`.
    """
    arrays = {}
    for stored in _stored_tensors(file):
        dtype = _NUMPY_DTYPES.get(stored.dtype)
        if dtype is None:
            continue
        values: NDArray[Any] = np.empty(stored.shape, dtype)
        if stored.n_bytes:
            values = np.memmap(file, dtype, 'r', stored.start, stored.shape)
        if stored.dtype == 'BF16':
            values = (values.astype(np.uint32) << 16).view(np.float32)
        arrays[stored.name] = values.astype(np.float32, copy=False)
    return arrays


def read_weights(file: Path, mapped: str | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, each in separate memory, which the caller may
    change or keep.

    Tensors whose names end with `mapped` are mapped instead: only rows that are read take memory.
    This is for tables that are looked up, not multiplied. Changes are made to a copy, not to the
    file.

    The package safetensors maps all tensors. Rounding may depend on a matrix's alignment, which is
    arbitrary in a mapped file, so each would have to be copied, and memory would hold the weights
    twice meanwhile. https://huggingface.co/docs/safetensors, "Format"
    """
    import torch

    tensors: dict[str, Tensor] = {}
    with file.open('rb') as stream:
        for stored in _stored_tensors(file):
            size = (stored.n_bytes,)
            if mapped is not None and stored.name.endswith(mapped) and stored.n_bytes:
                raw = torch.from_numpy(np.memmap(file, np.uint8, 'c', stored.start, size))
            else:
                raw = torch.empty(size, dtype=torch.uint8)
                stream.seek(stored.start)
                stream.readinto(raw.numpy().data)
            dtype = getattr(torch, _DTYPES[stored.dtype])
            tensors[stored.name] = raw.view(dtype).reshape(stored.shape)
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

    def add(weight: Tensor, update: Tensor) -> Tensor:
        return weight.float().add_(update)

    as_float = {name: value.float() for name, value in adapter.items() if _is_low_rank(name)}
    return _with_updates(base, {**adapter, **as_float}, config_path, add)


def merged_arrays(
    base: dict[str, NDArray[np.float32]], adapter: dict[str, NDArray[np.float32]], config_path: Path
) -> dict[str, NDArray[np.float32]]:
    """As `merged`, with arrays. The arrays of `base` do not change."""
    return _with_updates(base, adapter, config_path, np.add)


def _is_low_rank(name: str) -> bool:
    return name.endswith((_LORA_A, _LORA_B))


def _with_updates(
    base: Mapping[str, Weight],
    adapter: Mapping[str, Weight],
    config_path: Path,
    add: Callable[[Weight, Weight], Weight],
) -> dict[str, Weight]:
    """What `merged` gives; `add` gives the sum of a weight and its update."""
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
            result[f'{stem}.weight'] = add(weight, scale * (other @ value))
        elif not target.endswith(_LORA_B):
            result[target] = value
        elif name.replace('.lora_B.', '.lora_A.') not in adapter:
            raise DamagedFileError(
                f'{config_path.parent}: {target} has no lora_A beside it: fetch the adapter again'
            )
    return result


def with_unit_layer(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """A BERT's weights, with a unit layer's weights, float32, if its config.json names one and they
    are missing: `unit_layer`.
    """
    if not config.get(UNIT_LAYER):
        return dict(tensors)
    import torch

    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    arrays = unit_layer(shapes, config)
    # Copied, since PyTorch aligns memory otherwise.
    layer = {name: torch.from_numpy(array).clone() for name, array in arrays.items()}
    return {**layer, **tensors}


def unit_layer(
    shapes: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]
) -> dict[str, NDArray[np.float32]]:
    """The weights of a unit layer, the last of a BERT; none if its config.json names none.

    `shapes` are the shapes of the weights that it has.

    RepBERT ranks by the inner product of mean vectors (RepBERT eq. 2-3). If a base was trained for
    the cosine, it has learned the direction of a mean vector, and the length is noise. A unit layer
    attends to all tokens alike (queries are 0 and keys the identity until queries are trained) and
    adds their mean vector, times ten, to each; layer normalisation then makes the sums equally
    long. The mean of the output has the direction of the input's mean, less its average over
    dimensions, which layer normalisation takes away: the inner product ranks as cosine did.

    Raises DamagedFileError for sizes that the base does not have.
    """
    if not config.get(UNIT_LAYER):
        return {}
    from pyserini_repbert.models.bert_config import BertConfig

    sizes = BertConfig.from_dict(config)
    size = sizes.hidden_size
    inner = sizes.intermediate_size
    longest = max((max(shape, default=0) for shape in shapes.values()), default=0)
    if max(size, inner) > longest:
        raise DamagedFileError(
            f'config.json names a hidden_size of {size} and an intermediate_size of {inner}, the '
            f'weights have at most {longest} rows or columns: fetch the checkpoint again'
        )
    identity = np.eye(size, dtype=np.float32)
    weights = {
        'attention.self.query': np.zeros((size, size), np.float32),
        'attention.self.key': identity,
        'attention.self.value': identity.copy(),
        'attention.output.dense': np.float32(MEAN_OVER_TOKEN) * identity,
        'attention.output.LayerNorm': np.ones(size, np.float32),
        'intermediate.dense': np.zeros((inner, size), np.float32),
        'output.dense': np.zeros((size, inner), np.float32),
        'output.LayerNorm': np.ones(size, np.float32),
    }
    stem = f'bert.encoder.layer.{sizes.num_hidden_layers - 1}'
    layer: dict[str, NDArray[np.float32]] = {}
    for name, weight in weights.items():
        layer[f'{stem}.{name}.weight'] = weight
        layer[f'{stem}.{name}.bias'] = np.zeros(len(weight), np.float32)
    return layer

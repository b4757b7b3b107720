"""Loading a checkpoint's weights into a model: no parameter may be missing, no weight left over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoints.folder import Checkpoint

# PyTorch's dtypes by their names in the format
_DTYPES = {
    'F64': torch.float64,
    'F32': torch.float32,
    'F16': torch.float16,
    'BF16': torch.bfloat16,
    'F8_E4M3': torch.float8_e4m3fn,
    'F8_E5M2': torch.float8_e5m2,
    'I64': torch.int64,
    'I32': torch.int32,
    'I16': torch.int16,
    'I8': torch.int8,
    'U8': torch.uint8,
    'BOOL': torch.bool,
}
Model = TypeVar('Model', bound=nn.Module)


@contextmanager
def without_weights() -> Iterator[None]:
    """In this context, modules are made without weights: their parameters are on the meta device, not initialised.

    PyTorch's initialisers are skipped. Filling weights only to replace them takes 2.5 seconds for BERT-Base and 10 for
    BERT-Large, this 0.05; on the meta device, an initialiser imports `torch._dynamo`, 2.7 seconds (two shared cores).
    """
    with torch.device('meta'), _WithoutInitialisers():
        yield


class _WithoutInitialisers(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if getattr(func, '__module__', None) == 'torch.nn.init':
            return args[0] if args else given['tensor']
        return func(*args, **given)


def load_model(
    make: Callable[[], Model],
    checkpoint: Checkpoint,
    tied: Mapping[str, str] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> Model:
    """The model that `make` builds, with a checkpoint's weights: float32, on the CPU, in evaluation mode.

    `tied`, `tensors` and errors are those of `load_strictly`.
    """
    with without_weights():
        model = make()
    load_strictly(model, checkpoint, tied, tensors)
    return model.eval()


def load_strictly(
    module: nn.Module,
    checkpoint: Checkpoint,
    tied: Mapping[str, str] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
) -> None:
    """Make a checkpoint's weights, in float32, the parameters of `module`: none may be missing or left over.

    Only `bert.pooler.*` and `tied` tensors may be left over, if their shapes are right.

    Raises DamagedFileError naming the missing, unexpected or misshapen tensors.

    Parameters
    ----------
    tied : {name of a tensor: the parameter that it repeats}
    tensors : the checkpoint's, if already read; those in float32 become the parameters themselves, uncopied
    """
    tensors = checkpoint.tensors() if tensors is None else tensors
    expected = module.state_dict()
    hidden = checkpoint.config.get('hidden_size')
    pooler = {'bert.pooler.dense.weight': (hidden, hidden), 'bert.pooler.dense.bias': (hidden,)}
    shapes = {name: tuple(value.shape) for name, value in expected.items()}
    allowed = {name: shape for name, shape in pooler.items() if name not in shapes}
    allowed |= {name: shapes[of] for name, of in (tied or {}).items() if name not in shapes}
    missing = sorted(shapes.keys() - tensors.keys())
    unexpected = sorted(tensors.keys() - shapes.keys() - allowed.keys())
    misshapen = sorted(
        f'{name} {tuple(tensors[name].shape)} instead of {shape}'
        for name, shape in (shapes | allowed).items()
        if name in tensors and tuple(tensors[name].shape) != shape
    )
    problems = [
        f'{what}: {", ".join(names[:3])}{f" and {len(names) - 3} more" if len(names) > 3 else ""}'
        for what, names in (('missing', missing), ('unexpected', unexpected), ('of another shape', misshapen))
        if names
    ]
    if problems:
        raise DamagedFileError(f"checkpoint '{checkpoint.name}' does not fit its model: {'; '.join(problems)}")
    parameters = {name: tensors[name].to(torch.float32).contiguous() for name in shapes}
    module.load_state_dict(parameters, assign=True)


def read_weights(file: Path, mapped: str | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, each in memory of its own, which the caller may change or keep.

    Tensors whose names end with `mapped` are mapped instead: only rows that are read take memory. This is for tables
    that are looked up, not multiplied. Changes to them are copied, and leave the file as it is.

    The package safetensors maps all tensors. Rounding may depend on a matrix's alignment, which is arbitrary in a
    mapped file, so each would have to be copied, and memory would hold the weights twice meanwhile.
    https://huggingface.co/docs/safetensors, "Format"

    Raises DamagedFileError for a file that is not whole, or a dtype that is not supported.
    """
    try:
        with safe_open(file, framework='numpy'):  # checks the header against the file's size
            pass
    except SafetensorError as error:
        raise DamagedFileError(f'{file} is damaged ({error}): fetch the checkpoint again') from error
    tensors: dict[str, Tensor] = {}
    with file.open('rb') as stream:
        size = int.from_bytes(stream.read(8), 'little')
        header = json.loads(stream.read(size))
        header.pop('__metadata__', None)
        for name, entry in sorted(header.items(), key=lambda item: item[1]['data_offsets']):
            if entry['dtype'] not in _DTYPES:
                raise DamagedFileError(f'{file}: {name} has type {entry["dtype"]}, expected {", ".join(_DTYPES)}')
            first, last = entry['data_offsets']
            if mapped is not None and name.endswith(mapped) and last > first:
                raw = torch.from_numpy(np.memmap(file, np.uint8, 'c', 8 + size + first, (last - first,)))
            else:
                raw = torch.empty(last - first, dtype=torch.uint8)
                stream.seek(8 + size + first)
                stream.readinto(raw.numpy().data)
            tensors[name] = raw.view(_DTYPES[entry['dtype']]).reshape(entry['shape'])
    return tensors

"""Reading a safetensors file without mapping it into memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pyserini_repbert.errors import DamagedFileError

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
    found: dict[str, Tensor] = {}
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
            found[name] = raw.view(_DTYPES[entry['dtype']]).reshape(entry['shape'])
    return found

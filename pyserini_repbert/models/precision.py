"""Devices, and the precision of models on them."""

from __future__ import annotations

import torch

from pyserini_repbert.choices import Choice
from pyserini_repbert.errors import InputError


class Precision(Choice, what='precision'):
    """The dtype of a model's weights and activations; scores and embeddings always leave it as float32."""

    FLOAT32 = 'float32'
    BFLOAT16 = 'bfloat16'
    FLOAT16 = 'float16'
    AUTO = 'auto'

    def dtype(self, device: torch.device) -> torch.dtype:
        """The torch dtype; 'auto' is bfloat16 where the device computes in it natively, else float32."""
        if self is Precision.AUTO:
            return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
        found: torch.dtype = getattr(torch, self.value)
        return found


def has_native_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 there: AVX512-BF16 or AMX on a CPU, Ampere or later on an NVIDIA GPU."""
    if device.type == 'cuda':
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return device.type == 'cpu' and bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def usable_device(name: str) -> torch.device:
    """'cpu', 'cuda', 'cuda:1', 'mps' as a device. Raises InputError if this machine lacks it."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device '{name}' is unknown: expected cpu, cuda, cuda:N or mps") from error
    available = {
        'cpu': True,
        'cuda': torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        'mps': torch.backends.mps.is_available(),
    }
    if not available.get(device.type, False):
        raise InputError(f"device '{name}' is not available here: use --device cpu, or see the doctor command")
    return device

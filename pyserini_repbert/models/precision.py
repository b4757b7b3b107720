"""Devices, and the precision of models on them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pyserini_repbert.models.threads  # noqa: F401 - forked processes compute in one thread
from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bfloat16_speed import bfloat16_speed

if TYPE_CHECKING:
    import torch

# Products of matrices have to be so many times as fast in bfloat16: the rest of a model is not
# faster.
_LEAST_SPEED = 1.2
# Of NVIDIA's driver, of AMD's, and of Windows' in its Linux.
_GPU_DRIVERS = ('/dev/nvidiactl', '/dev/kfd', '/dev/dxg')
# CPU capabilities without AVX-512; ATEN_CPU_CAPABILITY can set them.
_NARROW = ('NO AVX', 'DEFAULT', 'AVX2')


class Precision(Choice, what='precision'):
    """The dtype of a model's weights and activations; its scores and embeddings are always
    float32.
    """

    FLOAT32 = 'float32'
    BFLOAT16 = 'bfloat16'
    FLOAT16 = 'float16'
    AUTO = 'auto'

    def on(self, device: torch.device) -> Precision:
        """The precision for a device: 'auto' is bfloat16 where the device computes faster in it,
        as measured on CPUs, otherwise float32.
        """
        if self is not Precision.AUTO:
            return self
        return Precision.BFLOAT16 if gains_by_bfloat16(device) else Precision.FLOAT32

    def on_device(self, name: str) -> Precision:
        """The precision for the device of this name; PyTorch is imported only for 'auto'."""
        return self if self is not Precision.AUTO else self.on(usable_device(name))

    def dtype(self, device: torch.device) -> torch.dtype:
        """The torch dtype for a device."""
        import torch

        return getattr(torch, self.on(device).value)  # type: ignore[no-any-return]


def has_native_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32: on CPUs with AVX512-BF16 or AMX, on NVIDIA GPUs from
    Ampere on.

    Also False on such a CPU if `ATEN_CPU_CAPABILITY` keeps PyTorch's kernels from using AVX-512.
    """
    import torch

    if device.type == 'cuda':
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != 'cpu' or has_narrow_kernels():
        return False
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def gains_by_bfloat16(device: torch.device) -> bool:
    """Whether models run faster in bfloat16 than in float32."""
    if not has_native_bfloat16(device):
        return False
    return device.type != 'cpu' or bfloat16_speed() >= _LEAST_SPEED


def bfloat16_gain(device: torch.device) -> str:
    """How much faster models run in bfloat16 than in float32, in words: '2x to 3x'; '' if they
    do not.
    """
    if not gains_by_bfloat16(device):
        return ''
    return '2x to 3x' if device.type == 'cpu' else 'several times'


def auto_reason(device: torch.device) -> str:
    """Why 'auto' chooses its precision on a device, for records."""
    if not has_native_bfloat16(device):
        return 'no native bfloat16'
    if device.type != 'cpu':
        return 'native bfloat16'
    return f'products in bfloat16 are {bfloat16_speed():.3g} times as fast as in float32'


def has_narrow_kernels() -> bool:
    """Whether PyTorch's own kernels compute without AVX-512: the CPU has none, or
    `ATEN_CPU_CAPABILITY` forbids it.
    """
    import torch

    return torch.backends.cpu.get_cpu_capability() in _NARROW


def on_device(tensor: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """The tensor on `device`; the copy from the host's memory to a GPU does not wait for the
    GPU.
    """
    import torch

    if torch.device(device).type == 'cuda' and tensor.device.type == 'cpu':
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def checked_device(name: str) -> str:
    """The name of a usable device; 'auto' is resolved. Raises the errors of `usable_device`.

    PyTorch is not imported for a CPU, nor for 'auto' on a machine that cannot have a GPU.
    """
    if name == 'cpu' or (name == 'auto' and not may_have_gpu()):
        return 'cpu'
    return str(usable_device(name))


def may_have_gpu() -> bool:
    """Whether PyTorch has to be asked for a GPU of CUDA or ROCm: Linux has a driver's file for
    each.
    """
    return sys.platform != 'linux' or any(map(os.path.exists, _GPU_DRIVERS))


def usable_device(name: str) -> torch.device:
    """The device 'cpu', 'cuda', 'cuda:1' or 'mps'; 'auto': a CUDA GPU if there is one, otherwise
    the CPU.

    Raises InputError for a device that is unknown, or that this machine lacks.
    """
    import torch

    if name == 'auto':
        name = 'cuda' if torch.cuda.is_available() else 'cpu'
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(
            f"device '{name}' is unknown: expected auto, cpu, cuda, cuda:N or mps"
        ) from error
    available = {
        'cpu': True,
        'cuda': torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        'mps': torch.backends.mps.is_available(),
    }
    if not available.get(device.type, False):
        raise InputError(
            f"device '{name}' is not available: use 'cpu', or see the doctor command",
            parameters=('device',),
        )
    return device

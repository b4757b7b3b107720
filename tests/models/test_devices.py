"""Names of devices: what this machine has, what it lacks, and what is none."""

import pytest
import torch

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.precision import usable_device


@pytest.fixture
def gpus(monkeypatch):
    """gpus(n): PyTorch says that the machine has n GPUs of CUDA."""

    def pretend(n):
        monkeypatch.setattr(torch.cuda, 'is_available', lambda: n > 0)
        monkeypatch.setattr(torch.cuda, 'device_count', lambda: n)

    return pretend


def test_auto_is_a_gpu_where_there_is_one(gpus):
    gpus(0)
    assert usable_device('auto') == torch.device('cpu')
    gpus(1)
    assert usable_device('auto') == torch.device('cuda')
    assert usable_device('cpu') == torch.device('cpu')


@pytest.mark.parametrize(('name', 'needed'), [('cuda', 1), ('cuda:0', 1), ('cuda:1', 2)])
def test_a_gpu_that_is_missing_is_refused(name, needed, gpus):
    gpus(needed)
    assert usable_device(name) == torch.device(name)
    gpus(needed - 1)
    with pytest.raises(InputError, match=f"device '{name}' is not available: use 'cpu'"):
        usable_device(name)


def test_devices_of_another_kind_are_refused():
    with pytest.raises(InputError, match="device 'meta' is not available"):
        usable_device('meta')
    with pytest.raises(InputError, match="device 'gpu' is unknown: expected auto, cpu, cuda"):
        usable_device('gpu')

"""What this machine computes in natively, and with how many threads."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

from pyserini_repbert.models import bfloat16_speed, precision
from pyserini_repbert.models.precision import Precision, has_native_bfloat16, usable_device

ANSWERS = (True, False)


CPU = torch.device('cpu')


Force = Callable[[bool], None]


@pytest.mark.parametrize(
    ('kernels', 'avx512', 'amx', 'native'),
    [
        ('AVX512', True, False, True),
        ('AVX512', False, True, True),
        ('AVX512', False, False, False),
        ('AVX2', True, True, False),
        ('DEFAULT', True, True, False),
    ],
)
def test_what_counts_as_native(kernels, avx512, amx, native, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability', lambda: kernels)
    monkeypatch.setattr(torch.cpu, '_is_avx512_bf16_supported', lambda: avx512)
    monkeypatch.setattr(torch.cpu, '_is_amx_tile_supported', lambda: amx)
    assert has_native_bfloat16(CPU) is native
    assert has_native_bfloat16(torch.device('meta')) is False
    for capability, expected in (((7, 5), False), ((8, 0), True), ((9, 0), True)):
        monkeypatch.setattr(
            torch.cuda, 'get_device_capability', lambda device, found=capability: found
        )
        assert has_native_bfloat16(torch.device('cuda:0')) is expected


@pytest.mark.parametrize(
    ('speed', 'taken', 'why'),
    [
        (0.64, 'float32', 'products in bfloat16 are 0.64 times as fast as in float32'),
        (1.19, 'float32', 'products in bfloat16 are 1.19 times as fast as in float32'),
        (1.9, 'bfloat16', 'products in bfloat16 are 1.9 times as fast as in float32'),
    ],
)
def test_auto_takes_what_is_faster(speed, taken, why, native_bfloat16, monkeypatch):
    native_bfloat16(True)
    monkeypatch.setattr(precision, 'bfloat16_speed', lambda: speed)
    assert Precision('auto').on(CPU) == taken
    assert precision.auto_reason(CPU) == why
    native_bfloat16(False)
    assert Precision('auto').on(CPU) == 'float32'
    assert precision.auto_reason(CPU) == 'no native bfloat16'


@pytest.mark.parametrize('kept', [None, '{}', '[1]', '{"x": "y"', '{"another": 3.0}'])
def test_the_speed_of_bfloat16_is_measured_once_for_a_machine(kept, monkeypatch, tmp_path):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    monkeypatch.setattr(bfloat16_speed, '_measure', lambda: 1.75)
    path = tmp_path / 'bfloat16.json'
    if kept is not None:
        path.write_text(kept)
    assert bfloat16_speed.bfloat16_speed.__wrapped__() == 1.75
    monkeypatch.setattr(bfloat16_speed, '_measure', lambda: 99)
    assert bfloat16_speed.bfloat16_speed.__wrapped__() == 1.75
    monkeypatch.setattr(torch, '__version__', 'another')
    assert bfloat16_speed.bfloat16_speed.__wrapped__() == 99
    speeds = json.loads(path.read_text())
    assert sorted(speeds.values()) == (
        [1.75, 99] if 'another' not in (kept or '') else [1.75, 3, 99]
    )


def test_both_precisions_are_measured(monkeypatch):
    monkeypatch.setattr(bfloat16_speed, '_SECONDS', 0.0)
    monkeypatch.setattr(bfloat16_speed, '_ROWS', 4)
    assert 0.001 < bfloat16_speed._measure() < 1000


@pytest.mark.slow
@pytest.mark.parametrize('kernels', ['default', 'avx2', None])
def test_bfloat16_runs_whatever_kernels_are_allowed(kernels):
    """Heads of 32 and texts of 40 wordpieces: long enough for PyTorch's fused attention to pack
    them.
    """
    code = (
        'import torch\nfrom pyserini_repbert.models.bert import Bert, BertConfig\n'
        'torch.manual_seed(0)\nmodel = Bert(BertConfig(vocab_size=50, hidden_size=64, '
        'num_hidden_layers=1, '
        'num_attention_heads=2, intermediate_size=64)).eval()\n'
        'ids = torch.arange(80).reshape(2, 40) % 50\nmask = torch.ones(2, 40, '
        'dtype=torch.bool)\nmask[1, 30:] = False\n'
        'with torch.inference_mode():\n'
        '    for own in (None, mask):\n'
        '        exact = model.float()(ids, torch.zeros_like(ids), own)\n'
        '        half = model.bfloat16()(ids, torch.zeros_like(ids), own)\n'
        '        print(bool((exact - half).abs().max() < 0.05))\n'
    )
    environment = {key: value for key, value in os.environ.items() if key != 'ATEN_CPU_CAPABILITY'}
    environment |= {'ATEN_CPU_CAPABILITY': kernels} if kernels else {}
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout.split(), done.stderr) == (['True', 'True'], '')


@pytest.mark.parametrize(('there', 'device'), [(False, 'cpu'), (True, 'cuda')])
def test_auto_is_a_gpu_where_there_is_one(there, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: there)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: int(there))
    assert str(usable_device('auto')) == device

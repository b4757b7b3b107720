"""What this machine computes in natively, and with how many threads."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
import torch

from pyserini_repbert.models import bfloat16_speed, precision, question_threads, timing
from pyserini_repbert.models.precision import Precision, has_native_bfloat16, usable_device
from pyserini_repbert.rerank import int8_speed

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


@pytest.fixture
def contenders(monkeypatch):
    """contenders(a, b) -> functions that take so many milliseconds, by a clock of their own."""
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0])
    monkeypatch.setattr(timing, 'time', clock)

    def take(milliseconds):
        now[0] += milliseconds / 1000

    def make(float32, bfloat16):
        return lambda: {
            'float32': lambda: take(float32),
            'bfloat16': lambda: take(bfloat16),
        }

    return make


@pytest.mark.parametrize(
    'kept', [None, '{}', '[1]', '{"x": "y"', '{"a": 1}', '{"a": {"b": {"c": 3.0}}}']
)
def test_times_are_measured_once_for_a_machine(kept, contenders, monkeypatch, tmp_path):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    # This test may run beside others.
    monkeypatch.setattr(timing, '_MOST_WAITING', math.inf)
    best_times = timing.best_times.__wrapped__
    path = tmp_path / 'timing.json'
    if kept is not None:
        path.write_text(kept)
    times = best_times('bfloat16', contenders(20, 1))
    assert times == {'float32': 20, 'bfloat16': 1}
    assert best_times('bfloat16', contenders(1, 20)) == times
    others = best_times('int8', contenders(1, 20))
    assert others['float32'] < others['bfloat16']
    monkeypatch.setattr(torch, '__version__', 'another')
    assert best_times('bfloat16', contenders(1, 20)) != times
    kept_times = json.loads(path.read_text())
    assert len(kept_times['bfloat16']) == 2
    assert ('a' in kept_times) == (kept is not None and '"c"' in kept)


def _compute_for(milliseconds):
    """Keep a core busy for so long."""
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        pass


@pytest.mark.skipif(not Path('/proc/self/schedstat').is_file(), reason='Linux says who waited')
def test_times_that_another_program_disturbs_are_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    monkeypatch.setattr(timing, '_MOST_SECONDS', 0.2)
    cores = os.sched_getaffinity(0)
    core = min(cores)
    busy = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        os.sched_setaffinity(busy.pid, {core})
        os.sched_setaffinity(0, {core})
        # A share of a core is given out for some milliseconds at a time.
        times = timing.best_times.__wrapped__('a', lambda: {'x': partial(_compute_for, 50)})
    finally:
        os.sched_setaffinity(0, cores)
        busy.kill()
        busy.wait()
    assert times['x'] >= 50
    assert not (tmp_path / 'timing.json').exists()


def test_times_that_cannot_be_kept_are_given(contenders, monkeypatch, tmp_path):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'file' / 'cache'))
    monkeypatch.setattr(timing, '_SECONDS', 0.0)
    assert set(timing.best_times.__wrapped__('bfloat16', contenders(1, 1))) == {
        'float32',
        'bfloat16',
    }


@pytest.mark.parametrize('module', [bfloat16_speed, int8_speed, question_threads])
def test_what_is_compared_runs(module, monkeypatch):
    monkeypatch.setattr(timing, '_SECONDS', 0.0)
    monkeypatch.setattr(timing, 'LAYERS', ((8, 8), (8, 16)))
    monkeypatch.setattr(int8_speed, 'LAYERS', ((8, 8), (8, 16)))
    monkeypatch.setattr(module, '_ROWS', 4)
    before = torch.get_num_threads()
    times = timing.measured(module._contenders()).milliseconds
    assert times and all(0 < milliseconds < 60_000 for milliseconds in times.values())
    assert torch.get_num_threads() == before


def test_int8_products_are_those_of_rounded_numbers():
    layer = onnxruntime.InferenceSession(int8_speed._quantized_layer(3, 2))
    (y,) = layer.run(None, {'x': np.array([[1, 2, 3]], np.float32)})
    np.testing.assert_allclose(y, [[6, 6]], atol=0.05)


@pytest.mark.parametrize(
    ('times', 'threads'),
    [
        ({'1': 4.0}, 1),
        ({'1': 4.0, '2': 4.5}, 1),
        ({'1': 4.0, '2': 3.9}, 1),
        ({'1': 4.0, '2': 3.0}, 2),
        ({'1': 8.0, '2': 4.0, '4': 3.9, '16': 9.0}, 2),
        ({'8': 2.0, '16': 3.0, '1': 5.0}, 8),
    ],
)
def test_a_question_gets_the_fewest_threads_that_are_as_fast(times, threads):
    chosen = question_threads.fewest_threads(times)
    assert chosen.threads == threads
    assert times[str(threads)] <= 1.03 * min(times['1'], min(times.values()))
    for number, milliseconds in times.items():
        assert f'{milliseconds:.3g} ms with {number}' in chosen.reason


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

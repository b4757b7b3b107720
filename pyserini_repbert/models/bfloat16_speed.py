"""How fast this machine's CPU multiplies in bfloat16, beside float32: measured, not believed.

Processors say that they have instructions for bfloat16. On some, products in bfloat16 are slower
all the same.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.files import atomic_file, cache_folder

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# In the cache folder: speeds by `_machine_key`.
_FILE = 'bfloat16.json'
# Rows of a batch's tokens; lengths of the vectors that go into a layer and come out of it, as in
# MiniLM and BERT base.
_ROWS = 512
_LAYERS = ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 3072), (3072, 768))
# Seconds that measuring takes, about.
_SECONDS = 0.1


@cache
def bfloat16_speed() -> float:
    """How many times as fast as in float32 the CPU multiplies matrices of models' sizes in
    bfloat16.

    It is measured once for a processor, a version of PyTorch and a number of threads, and kept in
    the cache folder.
    """
    path = cache_folder() / _FILE
    key = _machine_key()
    speeds = _read_speeds(path)
    if key not in speeds:
        speeds[key] = round(_measure(), 3)
        _keep(path, speeds)
    return speeds[key]


def _machine_key() -> str:
    import torch

    processor = ''
    info = Path('/proc/cpuinfo')
    if info.is_file():
        for line in info.read_text(encoding='utf-8', errors='replace').splitlines():
            name, _, value = line.partition(':')
            if name.strip() == 'model name':
                processor = value.strip()
                break
    kernels = torch.backends.cpu.get_cpu_capability()
    return f'{processor}, {kernels}, PyTorch {torch.__version__}, {torch.get_num_threads()} threads'


def _read_speeds(path: Path) -> dict[str, float]:
    """The speeds that are kept; none from a file that is not whole."""
    try:
        values: Any = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {key: float(speed) for key, speed in values.items() if isinstance(speed, (int, float))}


def _keep(path: Path, speeds: dict[str, float]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            json.dump(speeds, file, indent=1, sort_keys=True)
    except OSError as error:
        logger.info('the speed of bfloat16 is measured again next time: %s', error)


def _measure() -> float:
    """The time of all products in float32, divided by that in bfloat16: the best of some rounds."""
    import torch

    with torch.inference_mode():
        contenders = {kind: _products(kind) for kind in (torch.float32, torch.bfloat16)}
        # The first round makes kernels, and does not count.
        for products in contenders.values():
            products()
        best = dict.fromkeys(contenders, float('inf'))
        end = time.perf_counter() + _SECONDS
        while True:
            for kind, products in contenders.items():
                start = time.perf_counter()
                products()
                best[kind] = min(best[kind], time.perf_counter() - start)
            if time.perf_counter() >= end:
                return best[torch.float32] / best[torch.bfloat16]


def _products(kind: torch.dtype) -> Callable[[], None]:
    """A function that multiplies matrices of models' sizes."""
    import torch

    from pyserini_repbert.models.linear import linear

    pairs = []
    for n_in, n_out in _LAYERS:
        pairs.append((torch.ones(_ROWS, n_in, dtype=kind), torch.ones(n_out, n_in, dtype=kind)))

    def multiply() -> None:
        for x, weight in pairs:
            linear(x, weight)

    return multiply

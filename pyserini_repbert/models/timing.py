"""What this machine's CPU does faster: measured once, and kept.

Processors say what instructions they have, and how many cores. What is computed with them may be
slower all the same.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.files import atomic_file, cache_folder

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# In the cache folder: times by what was compared, and by `_machine_key`.
_FILE = 'timing.json'
# Lengths of the vectors that go into a layer and come out of it, as in MiniLM and BERT base.
LAYERS = ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 3072), (3072, 768))
# Seconds that measuring takes, about.
_SECONDS = 0.1

Contenders = Mapping[str, Callable[[], object]]


@cache
def best_times(comparison: str, contenders: Callable[[], Contenders]) -> Mapping[str, float]:
    """The milliseconds that each contender takes.

    They are measured once for a processor, a version of PyTorch and a number of threads, and kept
    in the cache folder.

    Parameters
    ----------
    comparison : what is compared; it names the times that are kept
    contenders : makes the functions that are compared, by name
    """
    path = cache_folder() / _FILE
    machine = _machine_key()
    times_of = _read_times(path)
    known = times_of.setdefault(comparison, {})
    if machine not in known:
        known[machine] = measured(contenders())
        _keep(path, times_of)
    return known[machine]


def measured(contenders: Contenders) -> dict[str, float]:
    """The milliseconds that each contender takes: the least of some rounds, in which they take
    turns.
    """
    # The first round makes kernels, and does not count.
    for run in contenders.values():
        run()
    best = dict.fromkeys(contenders, float('inf'))
    end = time.perf_counter() + _SECONDS
    while True:
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - start) * 1000)
        if time.perf_counter() >= end:
            return {name: round(milliseconds, 4) for name, milliseconds in best.items()}


def layer_products(rows: int, dtype: torch.dtype) -> Callable[[], None]:
    """A function that computes linear layers of models' sizes for so many tokens."""
    import torch

    from pyserini_repbert.models.linear import linear

    pairs = []
    for n_in, n_out in LAYERS:
        pairs.append((torch.ones(rows, n_in, dtype=dtype), torch.ones(n_out, n_in, dtype=dtype)))

    def multiply() -> None:
        with torch.inference_mode():
            for x, weight in pairs:
                linear(x, weight)

    return multiply


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


def _read_times(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """The times that are kept; none from a file that is not whole."""
    try:
        values: Any = json.loads(path.read_text(encoding='utf-8'))
        times_of: dict[str, dict[str, dict[str, float]]] = {}
        for comparison, machines in values.items():
            times_of[comparison] = {}
            for machine, times in machines.items():
                times_of[comparison][machine] = {name: float(ms) for name, ms in times.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return times_of


def _keep(path: Path, times_of: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            json.dump(times_of, file, indent=1, sort_keys=True)
    except OSError as error:
        logger.info('%s is not written, so times are measured again next time: %s', path, error)

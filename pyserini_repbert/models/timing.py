"""What this machine's CPU does faster: measured once, and stored.

Processors say which instructions and how many cores they have. Code that uses them may still be
slower.

A round counts where other programs did not disturb it: Linux says how long threads that could run
waited for a core. If every round of a contender was disturbed, only this process uses the times,
and the next one measures again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.files import CACHE_ERRORS, atomic_file, cache_folder

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

# In the cache folder: times by what was compared, and by `machine_name`.
_FILE = 'timing.json'
# Lengths of the vectors that go into a layer and come out of it, as in MiniLM and BERT base.
LAYERS = ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 3072), (3072, 768))
# Seconds that measuring takes, about; and at most, where rounds are disturbed.
_SECONDS = 0.1
_MOST_SECONDS = 0.5
# The share of a round for which its threads may wait for a core.
_MOST_WAITING = 0.02

Contenders = Mapping[str, Callable[[], object]]


@cache
def best_times(comparison: str, contenders: Callable[[], Contenders]) -> Mapping[str, float]:
    """The milliseconds that each contender takes.

    They are measured once for a processor, a version of PyTorch and a number of threads, and kept
    in the cache folder; times that other programs have disturbed are not kept.

    Parameters
    ----------
    comparison : the name under which the times are kept
    contenders : makes the functions that are compared, by name
    """
    path = cache_folder() / _FILE
    machine = machine_name()
    times_of = _read_times(path)
    known = times_of.setdefault(comparison, {})
    if machine not in known:
        measurement = measured(contenders())
        known[machine] = measurement.milliseconds
        if measurement.is_undisturbed:
            _keep(path, times_of)
        else:
            logger.info('%s: other programs use the cores, so times are not kept', comparison)
    return known[machine]


@dataclass(frozen=True)
class Measurement:
    """What contenders take.

    Attributes
    ----------
    milliseconds : by the contender's name
    is_undisturbed : whether they are times of rounds that no other program disturbed
    """

    milliseconds: dict[str, float]
    is_undisturbed: bool


def measured(contenders: Contenders) -> Measurement:
    """The time that each contender takes: the least of some rounds, in which they take turns.

    Disturbed rounds count only where a contender has no other.
    """
    # The first round makes kernels, and does not count.
    for run in contenders.values():
        run()
    best = dict.fromkeys(contenders, float('inf'))
    best_undisturbed = dict.fromkeys(contenders, float('inf'))
    began = time.perf_counter()
    while True:
        for name, run in contenders.items():
            waited_before = _seconds_waited()
            start = time.perf_counter()
            run()
            seconds = time.perf_counter() - start
            best[name] = min(best[name], seconds)
            if _seconds_waited() - waited_before <= _MOST_WAITING * seconds:
                best_undisturbed[name] = min(best_undisturbed[name], seconds)
        taken = time.perf_counter() - began
        is_undisturbed = max(best_undisturbed.values()) < float('inf')
        if taken >= _MOST_SECONDS or (taken >= _SECONDS and is_undisturbed):
            break
    chosen = best_undisturbed if is_undisturbed else best
    milliseconds = {name: round(1000 * seconds, 4) for name, seconds in chosen.items()}
    return Measurement(milliseconds, is_undisturbed)


def _seconds_waited() -> float:
    """How long threads of this process have waited for a core, in seconds in all.

    0 where the system does not say.
    """
    nanoseconds = 0
    for path in Path('/proc/self/task').glob('*/schedstat'):
        # A thread may have ended meanwhile.
        with contextlib.suppress(OSError, ValueError, IndexError):
            nanoseconds += int(path.read_text(encoding='ascii').split()[1])
    return nanoseconds / 1e9


def layer_products(rows: int, dtype: torch.dtype) -> Callable[[], None]:
    """A function that computes linear layers of models' sizes for so many tokens."""
    import torch

    from pyserini_repbert.models.linear import linear

    pairs = [
        (torch.ones(rows, n_in, dtype=dtype), torch.ones(n_out, n_in, dtype=dtype))
        for n_in, n_out in LAYERS
    ]

    def multiply() -> None:
        with torch.inference_mode():
            for x, weight in pairs:
                linear(x, weight)

    return multiply


def machine_name() -> str:
    """The processor, its vector instructions, PyTorch's version and threads: what times are of."""
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
    """The times that are kept; none from a file that is not intact."""
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
    except CACHE_ERRORS as error:
        logger.info('%s is not written, so times are measured again next time: %s', path, error)

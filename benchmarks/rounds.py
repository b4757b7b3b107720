"""Timing of several contenders in turn, so that what else the machine does falls on all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest of `rounds` times of each contender, seconds; an untimed call of each comes first."""
    for run in contenders.values():
        run()
    best = dict.fromkeys(contenders, float('inf'))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best

"""Advice while a model works: the flag that would make it faster."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

LONG = 10.0  # seconds of a model's work before the advice


def model_update(update: Callable[[int], object], options: argparse.Namespace) -> Callable[[int], object]:
    """A progress callback for a model's work that says once on stderr if bfloat16 would be faster than float32.

    It does so after `LONG` seconds, unless the user gave --quiet or a precision.
    """
    start = time.monotonic()

    def updated(done: int) -> object:
        nonlocal start
        if time.monotonic() - start >= LONG:
            start = math.inf
            _advise(options)
        return update(done)

    return update if options.quiet or options.precision else updated


def _advise(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from pyserini_repbert.models.precision import bfloat16_gain, usable_device

    device = (getattr(options, 'devices', None) or options.device).split(',')[0]
    gain = bfloat16_gain(usable_device(device))
    if gain and not getattr(options, 'advised', False):
        options.advised = True
        tqdm.write(f'bfloat16 is {gain} faster here: --bf16', file=sys.stderr)

"""How fast a sync encodes passages, beside its bar; where bfloat16 is faster, that is said."""

from __future__ import annotations

import sys
import time
from typing import Any

# A sync that encodes for so many seconds may take minutes.
_LONG = 20.0


class EncodingRate:
    """Shows on a bar how many passages were encoded, and how many a second.

    Parameters
    ----------
    bar : of tqdm; one that is disabled shows nothing
    offers_precision : whether to say that `--precision auto` is faster here
    """

    def __init__(self, bar: Any, offers_precision: bool) -> None:
        self._bar = bar
        self._offers_precision = offers_precision
        self._count = 0
        self._began: float | None = None
        self._first = 0

    def update(self, n: int) -> None:
        """Count passages that were encoded."""
        self._count += n
        if self._bar.disable:
            return
        now = time.perf_counter()
        if self._began is None:
            # The first batch also opens the encoder.
            self._began = now
            self._first = n
            return
        seconds = now - self._began
        rate = (self._count - self._first) / max(seconds, 1e-3)
        self._bar.set_postfix_str(f'{self._count:,} passages, {rate:.0f}/s')
        if self._offers_precision and seconds > _LONG:
            self._offers_precision = False
            self._offer()

    def _offer(self) -> None:
        import torch

        from pyserini_repbert.models.precision import bfloat16_gain

        gain = bfloat16_gain(torch.device('cpu'))
        if gain:
            self._bar.write(
                f'--precision auto encodes {gain} faster on this machine, and changes scores in '
                'the third digit. To use it, stop (Ctrl-C) and run the command again with it.',
                file=sys.stderr,
            )

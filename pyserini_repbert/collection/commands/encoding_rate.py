"""How fast a sync encodes passages, beside its bar, and whether bfloat16 is faster."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyserini_repbert.collection.settings import EncoderSource

_logger = logging.getLogger(__name__)

# A sync that encodes for so many seconds may take minutes.
_LONG = 20.0
# Bfloat16 is tried if a sync will take at least so many more seconds, for this share of them.
_REST = 60.0
_SHARE = 0.01
_LEAST_SPEED = 1.5


class EncodingRate:
    """Shows on a bar how many passages were encoded, and how many a second.

    Parameters
    ----------
    bar : of tqdm; one that is disabled shows nothing
    source : of a new collection's encoder in float32 on this CPU, for which bfloat16 is tried; None
        for others
    """

    def __init__(self, bar: Any, source: EncoderSource | None) -> None:
        self._bar = bar
        # Documents come in bursts, between which passages are encoded: the mean says more.
        bar.smoothing = 0
        self._source = source
        self._count = 0
        self._began: float | None = None
        self._first = 0

    def update(self, inputs: Sequence[str]) -> None:
        """Count passages that were encoded, given as the encoder reads them."""
        self._count += len(inputs)
        if self._bar.disable:
            return
        now = time.perf_counter()
        if self._began is None:
            # The first batch also opens the encoder.
            self._began = now
            self._first = len(inputs)
            return
        seconds = now - self._began
        rate = (self._count - self._first) / max(seconds, 1e-3)
        self._bar.set_postfix_str(f'{self._count:,} passages, {rate:.0f}/s')
        if self._source is not None and seconds > _LONG:
            rest = self._rest(seconds)
            if rest is not None:
                source = self._source
                self._source = None
                if rest > _REST:
                    self._offer(source, inputs, rate)

    def _rest(self, seconds: float) -> float | None:
        """How many more seconds the sync will take, after so many; None: nobody can know yet."""
        if self._bar.total is None:
            return float('inf')
        if not self._bar.n:
            return None
        return float(seconds * (self._bar.total - self._bar.n) / self._bar.n)

    def _offer(self, source: EncoderSource, inputs: Sequence[str], rate: float) -> None:
        """Say what bfloat16 gains, if it is much faster; an error of the trial ends no sync."""
        from pyserini_repbert.collection.commands.precision_trial import try_bfloat16

        try:
            trial = try_bfloat16(source.opened, inputs, rate, seconds=_SHARE * _REST)
        except Exception as error:
            _logger.info('bfloat16 could not be tried: %s', error)
            return
        if trial is None or trial.speed < _LEAST_SPEED:
            return
        self._bar.write(
            f'--precision auto encodes {trial.speed:.1f}x faster here, and changes scores by at '
            f'most {trial.difference:.2g} (tried with {trial.passages} of the passages). To use '
            'it, stop (Ctrl-C) and run the command again with it.',
            file=sys.stderr,
        )

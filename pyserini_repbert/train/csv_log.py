"""The log of a training: losses, learning rates and validation results as CSV, and its speed."""

from __future__ import annotations

import csv
import logging
import math
import time
from pathlib import Path
from typing import Any

import transformers
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import atomic_file
from pyserini_repbert.train.output import is_first
from pyserini_repbert.train.result import AT_CUTOFF, CUTOFF, METRIC

logger = logging.getLogger(__name__)

_COLUMNS = ('step', 'loss', 'grad_norm', 'learning_rate', METRIC, CUTOFF, AT_CUTOFF)


class CsvLog(transformers.TrainerCallback):  # type: ignore[misc]
    """Writes losses, learning rates and validation results to a CSV file, and logs how fast
    training is.

    A line is written before each checkpoint, so that a resumed training logs the same losses as one
    never stopped. Validating and saving do not count as training.

    Parameters
    ----------
    path : the CSV file
    pairs : how many query-passage pairs a step has, on all devices
    """

    def __init__(self, path: Path, pairs: int) -> None:
        self.path = path
        self.pairs = pairs
        self.steps = 0
        self.seconds = 0.0
        self.since = time.perf_counter()
        self.operations = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the lines of the steps already done, and find the best model so far in the
        present folder.
        """
        self._write(state)
        self.since = time.perf_counter()
        self.operations = state.total_flos
        if state.best_global_step:
            best = Path(args.output_dir) / f'{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}'
            if not best.is_dir():
                raise DamagedFileError(
                    f'{best}, the best model so far, is missing: overwrite this training'
                )
            state.best_model_checkpoint = str(best)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log before each checkpoint, and so the last step in any case."""
        now = time.perf_counter()
        self.steps += 1
        self.seconds += now - self.since
        self.since = now
        control.should_log = control.should_log or control.should_save

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Write the log again, with the new line. Raises InputError for a loss that is not
        finite.
        """
        loss = (logs or {}).get('loss')
        if loss is not None and not math.isfinite(loss):
            remedy = 'give a smaller training.learning_rate, or training.precision float32'
            raise InputError(f'the loss is not finite at step {state.global_step}: {remedy}')
        self._write(state)
        if is_first() and self.steps and loss is not None:
            rate = self.steps / self.seconds
            tera = (state.total_flos - self.operations) / self.seconds / 1e12
            speed = f'{rate:.2f} steps/s, {rate * self.pairs:.0f} pairs/s, {tera:.3g} TFLOP/s'
            logger.info('step %d: %s', state.global_step, speed)

    def on_evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Leave the time since the last step out."""
        self.since = time.perf_counter()

    on_save = on_evaluate

    def _write(self, state: Any) -> None:
        if not is_first():
            return
        # An entry with nothing but its step has no line.
        rows = [entry for entry in state.log_history if len(entry.keys() & _COLUMNS) > 1]
        with atomic_file(self.path) as stream:
            writer = csv.DictWriter(stream, _COLUMNS, extrasaction='ignore', lineterminator='\n')
            writer.writeheader()
            writer.writerows(rows)

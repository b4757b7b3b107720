"""The log of a training: a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from pyserini_repbert.files import atomic_file
from pyserini_repbert.train.output import AT_CUTOFF, CUTOFF, METRIC

_COLUMNS = ('step', 'loss', 'grad_norm', 'learning_rate', METRIC, CUTOFF, AT_CUTOFF)


class CsvLog(TrainerCallback):  # type: ignore[misc]
    """Writes losses, learning rates and validation results to a CSV file.

    A resumed training first rewrites the file from the state that it resumes from: the file may hold more, or less.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the lines of the steps already done."""
        if state.is_world_process_zero:
            self.write(state.log_history)

    def write(self, history: Iterable[Mapping[str, Any]]) -> None:
        """Write the whole file anew from the Trainer's log."""
        with atomic_file(self.path) as stream:
            writer = csv.DictWriter(stream, _COLUMNS, lineterminator='\n')
            writer.writeheader()
            writer.writerows(filter(None, map(_line, history)))

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append a line."""
        line = _line({**(logs or {}), 'step': state.global_step})
        if not state.is_world_process_zero or line is None:
            return
        with open(self.path, 'a', encoding='utf-8', newline='') as stream:
            csv.DictWriter(stream, _COLUMNS, lineterminator='\n').writerow(line)


def _line(logged: Mapping[str, Any]) -> dict[str, Any] | None:
    known = {name: value for name, value in logged.items() if name in _COLUMNS}
    return known if len(known) > 1 else None  # more than the step


class LossMeter(TrainerCallback, ExportableState):  # type: ignore[misc]
    """The loss since the log's last line, saved with the training's state, so that a resumed training logs the same.

    Parameters
    ----------
    since : sum of the losses of the steps since the last line
    last : step of the last line
    """

    def __init__(self, since: float = 0.0, last: int = 0) -> None:
        self.since, self.last = since, last

    def state(self) -> dict[str, Any]:
        """The arguments that the Trainer saves, and makes this callback from when it resumes."""
        return {'args': {'since': self.since, 'last': self.last}, 'attributes': {}}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the last step in any case: a short training has no other line."""
        if state.global_step >= state.max_steps:
            control.should_log = True

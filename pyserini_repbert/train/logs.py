"""The log of a training: a CSV file, and TensorBoard's event files if asked for."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from pyserini_repbert.files import atomic_file
from pyserini_repbert.train.result import AT_CUTOFF, CUTOFF, METRIC

logger = logging.getLogger(__name__)

FIRST_STEPS = 10  # whose losses should not all be 0
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

    Warns if the losses of the first `FIRST_STEPS` steps are all 0.

    Parameters
    ----------
    since : sum of the losses of the steps since the last line
    last : step of the last line
    zero : whether all losses have been 0 so far
    """

    def __init__(self, since: float = 0.0, last: int = 0, zero: bool = True) -> None:
        self.since, self.last, self.zero = since, last, zero

    def state(self) -> dict[str, Any]:
        """The arguments that the Trainer saves, and makes this callback from when it resumes."""
        return {'args': {'since': self.since, 'last': self.last, 'zero': self.zero}, 'attributes': {}}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the last step in any case, since a short training has no other line; warn of losses that are all 0."""
        if state.global_step >= state.max_steps:
            control.should_log = True
        if self.zero and state.is_world_process_zero and state.global_step == min(FIRST_STEPS, state.max_steps):
            logger.warning(
                'the losses of the first %d steps are all 0: every relevant passage scores more than the margin above '
                'the others, and nothing is learnt. For RepBERT, give a smaller training.scale, or leave it out beside '
                'unit_layer: true; harder negatives help every system',
                state.global_step,
            )


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a training's CSV log, column -> text; empty if there is no log yet."""
    if not path.is_file():
        return []
    with open(path, encoding='utf-8', newline='') as stream:
        return list(csv.DictReader(stream))


class EventLog(TrainerCallback):  # type: ignore[misc]
    """Writes the columns of the CSV log as TensorBoard's events; a resumed training hides those of steps done again.

    The Trainer's own callback also writes its arguments, local paths among them, into a folder named after the host.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open a new event file."""
        if state.is_world_process_zero:
            from torch.utils.tensorboard import SummaryWriter

            done: int = state.global_step
            self.writer = SummaryWriter(str(self.folder), purge_step=done + 1 if done else None)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Write one point for each value."""
        if self.writer is None:
            return
        for name in _COLUMNS:
            if name in (logs or {}):
                self.writer.add_scalar(name, float((logs or {})[name]), state.global_step)
        self.writer.flush()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()

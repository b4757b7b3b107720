"""What a training writes down as it goes: a CSV file, and TensorBoard's event files where they are asked for."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from pyserini_repbert.files import atomic_file

METRIC = 'eval_measure'
CUTOFF, AT_CUTOFF = 'eval_cutoff', 'eval_at_cutoff'  # of a model that is the best so far
LOG = 'log.csv'
EVENTS = 'tensorboard'  # a folder
_COLUMNS = ('step', 'loss', 'grad_norm', 'learning_rate', METRIC, CUTOFF, AT_CUTOFF)


class CsvLog(TrainerCallback):  # type: ignore[misc]
    """Writes losses, learning rates and validation results to a CSV file; a resumed training goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep the lines of the steps that are not done again."""
        if not state.is_world_process_zero:
            return
        kept = (
            [row for row in read_log(self.path) if int(row['step']) <= state.global_step] if state.global_step else []
        )
        with atomic_file(self.path) as stream:
            writer = csv.DictWriter(stream, _COLUMNS, lineterminator='\n')
            writer.writeheader()
            writer.writerows(kept)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """One line."""
        known = {name: value for name, value in (logs or {}).items() if name in _COLUMNS}
        if not state.is_world_process_zero or not known:
            return
        with open(self.path, 'a', encoding='utf-8', newline='') as stream:
            csv.DictWriter(stream, _COLUMNS, lineterminator='\n').writerow({'step': state.global_step, **known})


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a training's log, none where there is no log yet."""
    if not path.is_file():
        return []
    with open(path, encoding='utf-8', newline='') as stream:
        return list(csv.DictReader(stream))


class EventLog(TrainerCallback):  # type: ignore[misc]
    """Writes what the CSV file has to TensorBoard's event files; those of a resumed training hide what is done again.

    The Trainer's own callback also writes its arguments, with paths of the machine, into a folder named after it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open a new file."""
        if state.is_world_process_zero:
            from torch.utils.tensorboard import SummaryWriter

            done: int = state.global_step
            self.writer = SummaryWriter(str(self.folder), purge_step=done + 1 if done else None)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """One point for each value."""
        if self.writer is None:
            return
        for name in _COLUMNS:
            if name in (logs or {}):
                self.writer.add_scalar(name, float((logs or {})[name]), state.global_step)
        self.writer.flush()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close it."""
        if self.writer is not None:
            self.writer.close()

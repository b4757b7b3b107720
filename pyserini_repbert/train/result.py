"""The log of a training, and what came of it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Columns of the log: the validation measure, the hits that the best model should rerank, and the
# measure then.
METRIC = 'eval_measure'
CUTOFF = 'eval_cutoff'
AT_CUTOFF = 'eval_at_cutoff'


@dataclass(frozen=True)
class Trained:
    """The result of a training.

    Attributes
    ----------
    folder : the checkpoint
    steps : fewer than asked for if training stopped early
    loss : mean over the steps
    best : validation measure of the best model, which is the result
    cutoff : how many hits of the validation topics the model should best rerank
    at_cutoff : the measure then
    before : validation measure of the base
    """

    folder: Path
    steps: int
    loss: float
    best: float | None
    cutoff: int | None = None
    at_cutoff: float | None = None
    before: float | None = None

    @classmethod
    def from_log(cls, folder: Path, rows: Sequence[Mapping[str, Any]]) -> Trained:
        """From the rows of a training's log; its last row with a loss is of the last step."""
        total = 0.0
        steps = 0
        measured: dict[int, float] = {}
        cutoff = None
        at_cutoff = None
        for row in rows:
            step = int(row['step'])
            if _has(row, 'loss'):
                total += float(row['loss']) * (step - steps)
                steps = step
            if _has(row, METRIC):
                measured[step] = float(row[METRIC])
            if _has(row, CUTOFF):
                cutoff = int(row[CUTOFF])
                at_cutoff = float(row[AT_CUTOFF])
        before = measured.pop(0, None)
        return cls(
            folder=folder,
            steps=steps,
            loss=total / max(steps, 1),
            best=max(measured.values(), default=None),
            cutoff=cutoff,
            at_cutoff=at_cutoff,
            before=before,
        )

    @property
    def validated(self) -> str:
        """The validation measure in words."""
        before = '' if self.before is None else f' ({self.before:.4f} before training)'
        return f'{self.best:.4f}{before}'


def _has(row: Mapping[str, Any], column: str) -> bool:
    return str(row.get(column, '')) != ''


def read_log(path: Path) -> list[dict[str, str]]:
    """The rows of a training's CSV log, column -> text; empty if there is no log yet."""
    if not path.is_file():
        return []
    return list(csv.DictReader(path.read_text(encoding='utf-8').splitlines()))

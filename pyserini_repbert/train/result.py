"""The result of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

METRIC = 'eval_measure'  # column of the log: the validation measure
CUTOFF, AT_CUTOFF = 'eval_cutoff', 'eval_at_cutoff'  # the same, only for a model that is the best so far


class Trained(NamedTuple):
    """The result of a training.

    Attributes
    ----------
    folder : the checkpoint
    steps : optimizer steps done, fewer than asked for if training stopped early
    loss : mean over all steps
    best : the validation measure of the best model, which is the result; None without a validation
    cutoff, at_cutoff : how many hits of the validation topics the model should best rerank, and the measure then; None
        without a run to rerank
    """

    folder: Path
    steps: int
    loss: float
    best: float | None
    cutoff: int | None = None
    at_cutoff: float | None = None

    @classmethod
    def of(cls, folder: Path, rows: Sequence[Mapping[str, Any]]) -> Trained:
        """From the lines of a training's log; its last line with a loss is of the last step."""
        total, before = 0.0, 0
        for row in rows:
            if row.get('loss') not in (None, ''):
                total += float(row['loss']) * (int(row['step']) - before)
                before = int(row['step'])
        measured = [float(row[METRIC]) for row in rows if row.get(METRIC) not in (None, '')]
        tuned = [(int(row[CUTOFF]), float(row[AT_CUTOFF])) for row in rows if row.get(CUTOFF) not in (None, '')]
        cutoff, at_cutoff = tuned[-1] if tuned else (None, None)
        return cls(folder, before, total / max(before, 1), max(measured, default=None), cutoff, at_cutoff)

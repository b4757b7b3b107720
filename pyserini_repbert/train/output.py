"""The output of a training: its files, which folders it may not replace, and what its log says."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.checksums import CHECKSUMS, read_checksums
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.train.recipe import Recipe

RECIPE = 'recipe.yaml'
LOG = 'log.csv'
EVENTS = 'tensorboard'  # a folder
CARD = 'README.md'
METRIC = 'eval_measure'  # column of the log: the validation measure
CUTOFF, AT_CUTOFF = 'eval_cutoff', 'eval_at_cutoff'  # the same, only for a model that is the best so far


def foreign(target: Path) -> str | None:
    """Why no training can have written an existing output, as the middle of an error message; None if one can."""
    if not target.is_dir():
        return 'is a file'
    names = sorted(path.name for path in target.iterdir())
    if names and not {RECIPE, CHECKSUMS} <= set(names):
        return f'holds {names[0]} and no trained checkpoint'
    own = {RECIPE, CHECKSUMS, LOG, EVENTS, CARD, *(read_checksums(target) if names else ())}
    return next((f'holds {name}, which no training writes' for name in names if name not in own), None)


def check_apart(recipe: Recipe, base: Checkpoint, target: Path) -> None:
    """Raise InputError where the output would replace something that the training reads."""
    read = {'base': recipe.base}
    beneath = base.base
    while beneath is not None:
        read[f'the base of {recipe.base}'] = str(beneath.folder)
        beneath = beneath.base
    if recipe.adapter is not None and recipe.adapter.start is not None:
        read['adapter.start'] = recipe.adapter.start
    if recipe.teacher is not None and recipe.teacher.checkpoint is not None:
        read['teacher.checkpoint'] = recipe.teacher.checkpoint
    validation = {'validation': recipe.validation} if recipe.validation else {}
    for where, source in {f'data.{n}': own for n, own in enumerate(recipe.data)}.items() | validation.items():
        read |= {f'{where}.{key}': own for key, own in vars(source).items() if isinstance(own, str)}
    output = target.resolve()
    for what, name in read.items():
        place = Path(name).resolve()
        if Path(name).exists() and (place == output or output in place.parents):
            raise InputError(f'output {target} holds what the training reads ({what}: {name}): give another output')


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


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a training's CSV log, column -> text; empty if there is no log yet."""
    if not path.is_file():
        return []
    with open(path, encoding='utf-8', newline='') as stream:
        return list(csv.DictReader(stream))

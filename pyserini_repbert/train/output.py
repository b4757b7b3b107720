"""The output folder of a training: the names of its files, and which folders it may not replace."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS, read_checksums
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.train.recipe import Recipe

RECIPE = 'recipe.yaml'
LOG = 'log.csv'
EVENTS = 'tensorboard'  # a folder
CARD = 'README.md'


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

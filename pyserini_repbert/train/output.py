"""The output of a training, and the folder beside it that holds its state while it runs.

The state of the output OUT is in OUT.training: the recipe, the log, and the Trainer's checkpoints.
OUT appears when it is whole; only then is OUT.training removed.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.checksums import verify_checksums
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import (
    atomic_file,
    atomic_folder,
    locked,
    remove_leftovers,
    set_aside,
)
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.train.digests import INPUTS, Digests, check_digests, write_digests
from pyserini_repbert.train.states import (
    discard,
    has_saved_state,
    newest_state,
    remove_unusable_states,
)

RECIPE = 'recipe.yaml'
LOG = 'log.csv'
EVENTS = 'tensorboard'  # a folder
METRIC = 'eval_measure'  # column of the log: the validation measure
# hits that the best model should rerank, and METRIC then
CUTOFF = 'eval_cutoff'
AT_CUTOFF = 'eval_at_cutoff'
REPLACES = 'replaces-output'  # in the state: an earlier output may be replaced when all is done


class Trained(NamedTuple):
    """The result of a training."""

    folder: Path
    steps: int  # fewer than asked for if training stopped early
    loss: float  # mean over the steps
    best: float | None  # validation measure of the best model, which is the result
    cutoff: int | None = None  # how many hits of the validation topics the model should best rerank
    at_cutoff: float | None = None  # the measure then
    before: float | None = None  # validation measure of the base

    @classmethod
    def of(cls, folder: Path, rows: Sequence[Mapping[str, Any]]) -> Trained:
        """From the lines of a training's log; its last line with a loss is of the last step."""
        rows = [{name: value for name, value in row.items() if value != ''} for row in rows]
        total = 0.0
        steps = 0
        for row in rows:
            if 'loss' in row:
                total += float(row['loss']) * (int(row['step']) - steps)
                steps = int(row['step'])
        measured = {int(row['step']): float(row[METRIC]) for row in rows if METRIC in row}
        base = measured.pop(0, None)
        best = max(measured.values(), default=None)
        tuned = [(int(row[CUTOFF]), float(row[AT_CUTOFF])) for row in rows if CUTOFF in row]
        cutoff, at_cutoff = tuned[-1] if tuned else (None, None)
        return cls(folder, steps, total / max(steps, 1), best, cutoff, at_cutoff, base)

    @property
    def validated(self) -> str:
        """The validation measure in words."""
        before = '' if self.before is None else f' ({self.before:.4f} before training)'
        return f'{self.best:.4f}{before}'


def read_log(path: Path) -> list[dict[str, str]]:
    """The lines of a training's CSV log, column -> text; empty if there is no log yet."""
    text = path.read_text(encoding='utf-8') if path.is_file() else ''
    return list(csv.DictReader(text.splitlines()))


def work_folder(target: Path) -> Path:
    """The folder of the state for an output."""
    return target.with_name(f'{target.name}.training')


def is_first() -> bool:
    """Whether this is the first of several processes, or the only one: the one that writes."""
    return not int(os.environ.get('RANK', '0'))


def check_apart(recipe: Recipe, base: Checkpoint, target: Path) -> None:
    """Raise InputError where the output would replace something that the training reads."""
    names = [recipe.base, *(name for _, name in recipe.inputs())]
    while base.base is not None:
        base = base.base
        names.append(str(base.folder))
    output = target.resolve()
    for name in names:
        path = Path(name).resolve()
        if path.exists() and output in (path, *path.parents):
            raise InputError(
                f'output {target} holds what the training reads ({name}): give another output'
            )


def earlier_result(recipe: Recipe, target: Path, resume: bool, overwrite: bool) -> Trained | None:
    """What `resume` finds if the output is whole; the state that a killed process left beside it
    is removed.
    """
    if not _is_trained(recipe, target, resume, overwrite):
        return None
    if is_first():
        with _locked(target):
            discard(work_folder(target))
    return Trained.of(target, read_log(target / LOG))


def _is_trained(recipe: Recipe, target: Path, resume: bool, overwrite: bool) -> bool:
    """Whether `resume` finds the whole output of this recipe; an error says what is in the way
    of it or of resuming.
    """
    work = work_folder(target)
    if overwrite and target.exists() and not (target / RECIPE).is_file():
        raise InputError(
            f'output {target} is no trained checkpoint, so it is not overwritten: give another '
            f'output'
        )
    if target.exists() and not overwrite and not (resume and (work / REPLACES).is_file()):
        if resume and _recipe_in(target) == recipe.text:
            verify_checksums(target)
            return True
        if is_first():
            raise InputError(
                f'{target} is there already: give another output, or overwrite it',
                parameters=('output', 'overwrite'),
            )
    if (
        overwrite or not is_first()
    ):  # the first process answers for the state, which it may have begun to write
        return False
    if not work.exists():
        if resume:
            raise InputError(
                f'{work} is not there: there is nothing to resume', parameters=('resume',)
            )
        return False
    before = _recipe_in(work)
    if before is None:
        begun = {path.name for path in work.iterdir() if not path.name.startswith('.')}
        if begun - {REPLACES, INPUTS}:
            raise InputError(
                f'{work} is in the way: it holds no {RECIPE}, so it is no training that was stopped'
            )
        return False  # stopped before it began
    if not resume:
        raise InputError(
            f'{work} holds a training that was stopped: resume it, or overwrite it',
            parameters=('resume', 'overwrite'),
        )
    if before != recipe.text:
        raise MismatchError(
            f'{work} holds a training of another recipe or other settings: give the same, or '
            f'begin anew',
            parameters=('overwrite',),
        )
    if not (work / INPUTS).is_file():
        raise MismatchError(
            f'{work} holds no {INPUTS}, as a training of an earlier version: begin anew',
            parameters=('overwrite',),
        )
    return False


def check_inputs(target: Path, digests: Digests) -> None:
    """Raise MismatchError where the training that was stopped began with other inputs."""
    work = work_folder(target)
    if _recipe_in(work) is not None:
        check_digests(work, digests)


@contextmanager
def state_folder(
    recipe: Recipe, target: Path, digests: Digests, resume: bool, overwrite: bool
) -> Iterator[tuple[Path, Path | None]]:
    """Prepare the state's folder, and lock it; yields it with the checkpoint to resume from, if
    any. `digests` are those of the inputs.

    Of several processes, the first one prepares it. An error before the first checkpoint leaves
    nothing behind.
    """
    work = work_folder(target)
    if not is_first():
        yield work, newest_state(work) if resume and work.is_dir() else None
        return
    work.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target):
        _is_trained(
            recipe, target, resume, overwrite
        )  # another process may have been at work meanwhile
        remove_leftovers(work.parent, work.name)
        if overwrite:
            discard(work)
        if target.exists() and not (work / REPLACES).is_file():
            with atomic_folder(
                work
            ) as folder:  # never there without the note that the output may go
                (folder / REPLACES).touch()
        work.mkdir(exist_ok=True)
        newest = newest_state(work)
        remove_unusable_states(work)
        try:
            if _recipe_in(work) is None:
                # before the recipe, which says that a training has begun
                write_digests(work, digests)
                with atomic_file(work / RECIPE) as stream:
                    stream.write(recipe.text)
            yield work, newest
        except Exception:
            if work.is_dir() and not has_saved_state(work):
                discard(work)
            raise


def _locked(target: Path) -> AbstractContextManager[None]:
    return locked(target.with_name(f'.{work_folder(target).name}.lock'), f'output {target}')


@contextmanager
def finished_output(target: Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes the output, with log and recipe, at the end; then
    the state is removed.
    """
    work = work_folder(target)
    earlier = None
    with atomic_folder(target) as folder:
        yield folder
        for name in (LOG, RECIPE):
            shutil.copyfile(work / name, folder / name)
        if (work / EVENTS).is_dir():
            shutil.copytree(work / EVENTS, folder / EVENTS)
        if (work / REPLACES).is_file() and target.exists():
            earlier = set_aside(target)
    if earlier is not None:
        shutil.rmtree(earlier, ignore_errors=True)
    discard(work)


def _recipe_in(folder: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (folder / RECIPE).read_text(encoding='utf-8')
    return None

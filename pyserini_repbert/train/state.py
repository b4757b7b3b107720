"""The folder that holds a training's state while it runs: the recipe, the log, and the Trainer's checkpoints.

The state of the output OUT is beside it, in OUT.training. OUT appears when it is whole; only then is OUT.training
removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from pyserini_repbert.checksums import CHECKSUMS, summed_names, verify_checksums
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import atomic_file, atomic_folder, remove_leftovers
from pyserini_repbert.locks import locked, owner
from pyserini_repbert.train.output import RECIPE, foreign
from pyserini_repbert.train.recipe import Recipe

REPLACES = 'replaces-output'  # in the state: an earlier output may be replaced when all is done
_STATE = 'trainer_state.json'
_CHECKPOINT = re.compile(r'checkpoint-(\d+)')


class Standing(Enum):
    """How far a training is: not begun, begun and stopped, or done."""

    NEW = 'new'
    BEGUN = 'begun'
    DONE = 'done'


def work_folder(target: Path) -> Path:
    """The folder of the state for an output."""
    return target.with_name(f'{target.name}.training')


def is_first() -> bool:
    """Whether this is the first of several processes, or the only one: the one that writes."""
    return not int(os.environ.get('RANK', '0'))


def standing(recipe: Recipe, target: Path, resume: bool, overwrite: bool) -> Standing:
    """How far the training of an output is; nothing is written.

    Raises
    ------
    InputError
        where something is in the way that neither `resume` nor `overwrite` allows, or there is nothing to resume
    MismatchError
        where `resume` meets the state of another recipe
    DamagedFileError
        where `resume` meets a damaged output
    """
    work = work_folder(target)
    if overwrite and target.exists() and (own := foreign(target)):
        raise InputError(f'output {target} {own}, so it is not overwritten: give another output')
    replaces = overwrite or (resume and (work / REPLACES).is_file())
    if target.exists() and not replaces:
        if resume and _recipe_in(target) == recipe.text:
            verify_checksums(target, required=())
            return Standing.DONE
        if is_first():
            raise InputError(
                f'{target} is there already: give another output, or overwrite it', parameters=('output', 'overwrite')
            )
    if overwrite or not work.exists():
        if resume and is_first():
            raise InputError(f'{work} is not there: there is nothing to resume', parameters=('resume',))
        return Standing.NEW
    before = _recipe_in(work)
    if before is None:
        if any(path.name != REPLACES and not path.name.startswith('.') for path in work.iterdir()):
            raise InputError(f'{work} is in the way: it holds no {RECIPE}, so it is no training that was stopped')
        return Standing.NEW  # stopped before it began
    if not resume:
        raise InputError(
            f'{work} holds a training that was stopped: resume it, or overwrite it', parameters=('resume', 'overwrite')
        )
    if before != recipe.text:
        raise MismatchError(
            f'{work} holds a training of another recipe or other settings: give the same, or begin anew',
            parameters=('overwrite',),
        )
    return Standing.BEGUN


@contextmanager
def state_folder(recipe: Recipe, target: Path, resume: bool, overwrite: bool) -> Iterator[Path | None]:
    """Prepare the state's folder, and lock it; yields the checkpoint to resume from, if any.

    Of several processes, the first one prepares it. An error before the first checkpoint leaves nothing behind.

    Raises
    ------
    BusyError
        where another process trains the same output
    DamagedFileError
        where the checkpoint to resume from is not as it was written
    InputError, MismatchError
        as in `standing`
    """
    work = work_folder(target)
    if not is_first():
        yield _newest(work)[0] if resume and work.is_dir() else None
        return
    work.parent.mkdir(parents=True, exist_ok=True)
    with locked(_lock(work), f'output {target}'):
        standing(recipe, target, resume, overwrite)  # another process may have been at work meanwhile
        remove_leftovers(work.parent, work.name)
        if overwrite and work.exists():
            discard(work)
        if target.exists() and not (work / REPLACES).is_file():
            with atomic_folder(work) as made:  # never there without the note that the output may go
                (made / REPLACES).touch()
        work.mkdir(exist_ok=True)
        try:
            yield _ready(recipe, work)
        except Exception:
            if work.is_dir() and not any(_checkpoints(work)):
                discard(work)
            raise


def _ready(recipe: Recipe, work: Path) -> Path | None:
    """Remove what is incomplete and write down the recipe; the checkpoint to resume from, None for none."""
    for leftover in work.glob('.*'):
        leftover.unlink()
    if _recipe_in(work) is None:
        with atomic_file(work / RECIPE) as stream:
            stream.write(recipe.text)
    newest, torn = _newest(work)
    for path in torn:
        shutil.rmtree(path)
    if newest is not None and (newest / CHECKSUMS).is_file():
        try:
            verify_checksums(newest, summed_names(newest))
        except DamagedFileError as error:
            raise DamagedFileError(
                f'{error}; without {newest}, a resumed training goes on from the checkpoint before',
                parameters=('resume',),
            ) from error
    return newest


@contextmanager
def finished_output(target: Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes the output at the end; then the state is removed."""
    work, earlier = work_folder(target), None
    with atomic_folder(target) as made:
        yield made
        if (work / REPLACES).is_file() and target.exists():
            earlier = _set_aside(target)
    if earlier is not None:
        shutil.rmtree(earlier, ignore_errors=True)
    discard(work)


def clear(target: Path) -> None:
    """Remove the state that a killed process left beside its finished output, unless a process holds its lock."""
    work = work_folder(target)
    if owner(_lock(work)) is None:
        discard(work)


def _lock(work: Path) -> Path:
    return work.with_name(f'.{work.name}.lock')


def discard(folder: Path) -> None:
    """Remove a folder, renamed first, so that no half-removed folder has its name."""
    if folder.exists():
        shutil.rmtree(_set_aside(folder), ignore_errors=True)
    remove_leftovers(folder.parent, folder.name)


def _set_aside(folder: Path) -> Path:
    """Rename a folder to a hidden name, which `remove_leftovers` finds if this process is killed."""
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f'.{folder.name}.'))
    aside.rmdir()
    return folder.rename(aside)


def _recipe_in(folder: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (folder / RECIPE).read_text(encoding='utf-8')
    return None


def _checkpoints(work: Path) -> dict[int, Path]:
    found = {path: _CHECKPOINT.fullmatch(path.name) for path in work.iterdir()}
    return {int(match[1]): path for path, match in found.items() if match}


def _newest(work: Path) -> tuple[Path | None, list[Path]]:
    """The newest complete checkpoint, and all incomplete ones, which lack the Trainer's state: it is written last."""
    found = _checkpoints(work)
    whole = [step for step, path in found.items() if _step_of(path) == step]
    return found[max(whole)] if whole else None, [path for step, path in found.items() if step not in whole]


def _step_of(checkpoint: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return int(json.loads((checkpoint / _STATE).read_text(encoding='utf-8'))['global_step'])
    return None


def is_finished(state: Any) -> bool:
    """Whether a training with this saved state (a TrainerState) had done its last step, or stopped early."""
    control = state.stateful_callbacks.get('TrainerControl', {})
    stopped = control.get('args', {}).get('should_training_stop', False) if isinstance(control, dict) else False
    return bool(stopped) or state.global_step >= state.max_steps

"""The output of a training, and the folder beside it that holds its state while it runs.

The state of the output OUT is in OUT.training: the recipe, the log, and the Trainer's checkpoints.
OUT appears when it is complete; only then is OUT.training removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.checksums import verify_checksums
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import atomic_file, atomic_folder, locked, remove_leftovers, set_aside
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.train.digests import Digests, check_digests, write_digests
from pyserini_repbert.train.forms import (
    EVENTS,
    INPUTS,
    LOG,
    RECIPE,
    REPLACES,
    STATE_FORM,
    TRAINED_FORM,
)
from pyserini_repbert.train.result import Trained, read_log
from pyserini_repbert.train.states import (
    discard,
    has_saved_state,
    newest_state,
    remove_unusable_states,
)


def is_first() -> bool:
    """Whether this is the first of several processes, or the only one: the one that writes."""
    return int(os.environ.get('RANK', '0')) == 0


@dataclass(frozen=True)
class TrainingState:
    """The folder in which a training keeps its state, and the checkpoint to resume from, if any."""

    folder: Path
    checkpoint: Path | None


@dataclass(frozen=True)
class TrainingOutput:
    """Where a training writes.

    Attributes
    ----------
    recipe : of the training
    target : the folder of the finished checkpoint
    resume : whether to continue from the state of a stopped training
    overwrite : whether to replace an earlier training's output and state
    """

    recipe: Recipe
    target: Path
    resume: bool
    overwrite: bool

    @property
    def work(self) -> Path:
        """The folder of the state."""
        return self.target.with_name(f'{self.target.name}.training')

    def earlier_result(self) -> Trained | None:
        """What `resume` finds if the output is complete; the state that a killed process left
        beside it is removed.

        Raises an error that says what prevents the output, or resuming.
        """
        if not self._is_finished():
            self._check_state()
            return None
        if is_first():
            with self._locked():
                discard(self.work, STATE_FORM)
        return Trained.from_log(self.target, read_log(self.target / LOG))

    def check_apart(self, base: Checkpoint) -> None:
        """Raise InputError if the output would replace something that the training reads."""
        names = [self.recipe.base]
        names += [source.name for source in self.recipe.inputs()]
        while base.base is not None:
            base = base.base
            names.append(str(base.folder))
        output = self.target.resolve()
        for name in names:
            path = Path(name).resolve()
            if path.exists() and output in (path, *path.parents):
                raise InputError(
                    f'output {self.target} holds what the training reads ({name}): give another '
                    f'output'
                )

    def check_inputs(self, digests: Digests) -> None:
        """Raise MismatchError if the training to resume began with other inputs.

        The first of several processes answers for the inputs, as for the state.
        """
        if not self.resume or self.overwrite or not is_first():
            return
        if _read_recipe(self.work) is not None:
            check_digests(self.work, digests)

    @contextmanager
    def prepare_state(self, digests: Digests) -> Iterator[TrainingState]:
        """Prepare the state's folder, and lock it; `digests` are the inputs' digests.

        Of several processes, the first one prepares it. An error before the first checkpoint leaves
        nothing behind.
        """
        if not is_first():
            can_resume = self.resume and self.work.is_dir()
            yield TrainingState(self.work, newest_state(self.work) if can_resume else None)
            return
        self.work.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            # Another process may have been at work meanwhile.
            if not self._is_finished():
                self._check_state()
            self._make_folder()
            checkpoint = newest_state(self.work)
            remove_unusable_states(self.work)
            try:
                self._write_beginning(digests)
                yield TrainingState(self.work, checkpoint)
            except Exception:
                if self.work.is_dir() and not has_saved_state(self.work):
                    discard(self.work, STATE_FORM)
                raise

    @contextmanager
    def finish(self) -> Iterator[Path]:
        """Yields a temporary folder that becomes the output, with log and recipe, at the end; then
        the state is removed.
        """
        earlier = None
        with atomic_folder(self.target) as folder:
            yield folder
            for name in (LOG, RECIPE):
                shutil.copyfile(self.work / name, folder / name)
            if (self.work / EVENTS).is_dir():
                shutil.copytree(self.work / EVENTS, folder / EVENTS)
            if self._replaces_output() and self.target.exists():
                # The training took time, in which a file may have come.
                TRAINED_FORM.check(self.target)
                earlier = set_aside(self.target)
        if earlier is not None:
            TRAINED_FORM.remove(earlier)
        discard(self.work, STATE_FORM)

    def _is_finished(self) -> bool:
        """Whether `resume` finds the whole output of this recipe.

        Raises InputError for an output that is in the way.
        """
        if not self.target.exists():
            return False
        if self.overwrite:
            if not (self.target / RECIPE).is_file():
                raise InputError(
                    f'output {self.target} is not a trained checkpoint, so it is not overwritten: '
                    f'give another output'
                )
            TRAINED_FORM.check(self.target)
            return False
        if self.resume and self._replaces_output():
            return False
        if self.resume and _read_recipe(self.target) == self.recipe.text:
            verify_checksums(self.target)
            return True
        if is_first():
            raise InputError(
                f'{self.target} is there already: give another output, or overwrite it',
                parameters=('output', 'overwrite'),
            )
        return False

    def _check_state(self) -> None:
        """Raise an error for a state that is in the way, or that cannot be resumed.

        The first process answers for the state, which it may have begun to write.
        """
        if not is_first():
            return
        work = self.work
        if self.overwrite:
            STATE_FORM.check(work)
            return
        if not work.exists():
            if self.resume:
                raise InputError(
                    f'{work} does not exist: there is nothing to resume', parameters=('resume',)
                )
            return
        begun_with = _read_recipe(work)
        if begun_with is None:
            _check_not_begun(work)
        elif not self.resume:
            raise InputError(
                f'{work} holds a training that was stopped: resume it, or overwrite it',
                parameters=('resume', 'overwrite'),
            )
        elif begun_with != self.recipe.text:
            raise MismatchError(
                f'{work} holds a training of another recipe or other settings: give the same, or '
                f'start again',
                parameters=('overwrite',),
            )
        elif not (work / INPUTS).is_file():
            raise MismatchError(
                f'{work} holds no {INPUTS}, as a training of an earlier version: start again',
                parameters=('overwrite',),
            )

    def _make_folder(self) -> None:
        """Make the folder of the state, with a note if an earlier output may go."""
        remove_leftovers(self.work.parent, self.work.name)
        if self.overwrite:
            discard(self.work, STATE_FORM)
        if self.target.exists() and not self._replaces_output():
            # The folder is never there without the note.
            with atomic_folder(self.work) as folder:
                (folder / REPLACES).touch()
        self.work.mkdir(exist_ok=True)

    def _write_beginning(self, digests: Digests) -> None:
        """Write what the training began with: the recipe last, which says that it has begun."""
        if _read_recipe(self.work) is None:
            write_digests(self.work, digests)
            with atomic_file(self.work / RECIPE) as stream:
                stream.write(self.recipe.text)

    def _replaces_output(self) -> bool:
        return (self.work / REPLACES).is_file()

    def _locked(self) -> AbstractContextManager[None]:
        lock = self.target.with_name(f'.{self.work.name}.lock')
        return locked(lock, f'output {self.target}')


def _check_not_begun(work: Path) -> None:
    """Raise InputError for a folder without a recipe that holds more than a training writes
    before its recipe.
    """
    names = {path.name for path in work.iterdir() if not path.name.startswith('.')}
    if names - {REPLACES, INPUTS}:
        raise InputError(
            f'{work} is in the way: it holds no {RECIPE}, so it is not a training that was stopped'
        )


def _read_recipe(folder: Path) -> str | None:
    """The text of the recipe in a folder; None if there is none."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (folder / RECIPE).read_text(encoding='utf-8')
    return None

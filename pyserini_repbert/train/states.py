"""The saved states of a training: which are complete, which one to continue from, which ones to
keep.

A state is a checkpoint folder of the Trainer's. The checksums of its files are written last, so a
state without them was never finished.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS, summed_names, verify_checksums, write_checksums
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import remove_leftovers, set_aside
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.train.forms import CHECKPOINT_FORM

logger = logging.getLogger(__name__)

_NAME = re.compile('checkpoint-([0-9]+)')
_TRAINER_STATE = 'trainer_state.json'


@dataclass
class States:
    """The states in a training's folder, by their steps."""

    whole: dict[int, Path] = field(default_factory=dict)
    # Why each of the others cannot be used.
    unusable: dict[Path, str] = field(default_factory=dict)

    @property
    def newest(self) -> Path | None:
        """The newest state to continue from."""
        return self.whole[max(self.whole)] if self.whole else None


def check_states(work: Path) -> States:
    """Compare all states with their checksums; a state with a damaged best model is damaged."""
    states = States()
    best: dict[int, int | None] = {}
    for step, folder in _folders(work).items():
        try:
            verify_checksums(folder, (*summed_names(folder), _TRAINER_STATE), remembered=False)
            best[step] = _best_step(folder)
        except DamagedFileError as error:
            # What to do is left out: the state before it will do.
            states.unusable[folder] = str(error).rpartition(': ')[0]
        except (OSError, ValueError):
            states.unusable[folder] = f'{folder} was not saved to its end'
        else:
            states.whole[step] = folder
    for step, best_step in best.items():
        if best_step is not None and best_step not in best:
            folder = states.whole.pop(step)
            states.unusable[folder] = f'the best model of {folder}, step {best_step}, is not intact'
    return states


def newest_state(work: Path) -> Path | None:
    """The state to continue from, and a warning if a newer one is damaged; None if none was
    saved to its end.

    Raises DamagedFileError if states were saved and none is intact.
    """
    states = check_states(work)
    newest = states.newest
    reasons = [reason for folder, reason in states.unusable.items() if _is_after(folder, newest)]
    if newest is None and any((folder / CHECKSUMS).is_file() for folder in states.unusable):
        raise DamagedFileError(
            f'{work} holds no complete state to continue from ({reasons[0]}): start again',
            parameters=('overwrite',),
        )
    if reasons:
        where = 'its beginning' if newest is None else newest.name
        logger.warning('%s: training goes on from %s', reasons[0], where)
    return newest


def remove_unusable_states(work: Path) -> None:
    """Remove the states that are not intact, so that no later one is taken for theirs."""
    for folder in check_states(work).unusable:
        discard(folder, CHECKPOINT_FORM)


def has_saved_state(work: Path) -> bool:
    """Whether a state was saved to its end."""
    return any((folder / CHECKSUMS).is_file() for folder in _folders(work).values())


def discard(folder: Path, form: FolderForm) -> None:
    """Remove a folder, renamed first, so that no half-removed folder has its name.

    One that holds anything else than its form has stays, with a warning.
    """
    if folder.exists():
        foreign = form.foreign_entry(folder)
        if foreign is not None:
            logger.warning('%s stays: it holds %s, which no %s has', folder, foreign, form.what)
            return
        form.remove(set_aside(folder))
    remove_leftovers(folder.parent, folder.name)


def seal_state(folder: Path) -> None:
    """Write the checksums of a state that is complete, then remove the states that nothing needs.

    The state before stays, for the case that this one is damaged; so do the best models of both.
    """
    write_checksums(folder)
    folders = _folders(folder.parent)
    kept = set(sorted(folders)[-2:])
    for step in tuple(kept):
        best_step = _best_step(folders[step])
        if best_step is not None:
            kept.add(best_step)
    for step, path in folders.items():
        if step not in kept:
            discard(path, CHECKPOINT_FORM)


def _folders(work: Path) -> dict[int, Path]:
    """The folders of states by step, the newest first."""
    folders = {}
    for path in work.iterdir():
        match = _NAME.fullmatch(path.name)
        if match is not None:
            folders[int(match[1])] = path
    return dict(sorted(folders.items(), reverse=True))


def _best_step(folder: Path) -> int | None:
    state = json.loads((folder / _TRAINER_STATE).read_text(encoding='utf-8'))
    # The Trainer writes 0 or null while there is no best model.
    return state['best_global_step'] or None


def _is_after(folder: Path, newest: Path | None) -> bool:
    return newest is None or _step(folder) > _step(newest)


def _step(folder: Path) -> int:
    return int(folder.name.rpartition('-')[2])

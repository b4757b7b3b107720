"""The factors that can be tested on one machine: a condition's commands with one setting changed."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyserini_repbert.catalog import checkpoint_kind
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.record import Model, Record
from pyserini_repbert.regression.blame import model_commands
from pyserini_repbert.regression.blame.model_commands import PRECISIONS
from pyserini_repbert.regression.environment import recorded
from pyserini_repbert.regression.schema import Condition, Regression, filled
from pyserini_repbert.regression.workspace import Workspace

FACTORS = ('precision', 'batch', 'threads', 'tokenizer', 'ties')
NO_MODEL = 'no command of this condition runs a model'
Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Variant:
    """One change of a condition's commands.

    Attributes
    ----------
    factor, name : the factor and the changed setting: 'precision', '--bf16'
    change : gives a command's changed words from its words and its record; equal words where the setting is not its own
    environment : variables that the commands see
    own_cache : whether it changes the vectors of catalog indexes, which then have to be built in a cache of its own
    """

    factor: str
    name: str
    change: Callable[[Words, Record], list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    own_cache: bool = False

    def affects(self, words: Words) -> bool:
        """Whether the variant changes a recorded command, or its environment variables."""
        record = recorded(words)
        if record is None:
            return False
        return self.change(words, record) != list(words) or (bool(self.environment) and bool(record.models))


@dataclass(frozen=True, slots=True)
class Untestable:
    """A factor, or one of its variants, that cannot be tested, and why."""

    factor: str
    why: str


def variants(
    condition: Condition, workspace: Workspace, folder: Path, factors: Iterable[str]
) -> tuple[list[Variant], list[Untestable]]:
    """The variants of a condition that has run in `workspace`, and the factors that cannot be tested.

    Parameters
    ----------
    folder : for the checkpoints that variants need
    factors : those to test, of `FACTORS`
    """
    commands = [command for build in workspace.builds(condition.needs) for command in build.commands]
    words = [workspace.words(command) for command in [*commands, *condition.commands]]
    records = [record for record in map(recorded, words) if record is not None]
    models = {model.name: model for record in records for model in record.models}
    named = any(map(model_commands.builds_named_index, records))
    found: list[Variant] = []
    cannot: list[Untestable] = []
    for factor in factors:
        if factor == 'precision':
            made = _precisions(models.values(), named)
        elif factor == 'batch':
            made = [Variant('batch', 'one at a time', model_commands.with_batches_of_one)]
        elif factor == 'threads':
            made = _threads()
        elif factor == 'tokenizer':
            made, failed = _tokenizers(models, folder, named)
            cannot += failed
        else:
            continue
        able = [one for one in made if any(one.affects(own) for own in words)]
        if not able and not any(one.factor == factor for one in cannot):
            cannot.append(Untestable(factor, 'no flag of its commands changes it' if models and made else NO_MODEL))
        found += able
    return found, cannot


def varied(regression: Regression, workspace: Workspace, variant: Variant) -> tuple[Regression, set[str]]:
    """The regression with changed builds, and the names of the builds that change, themselves or by what they need."""
    changed: set[str] = set()
    builds = dict(regression.builds)
    for name, build in regression.builds.items():  # each after those that it needs, as they are declared
        if changed & set(build.needs) or any(variant.affects(workspace.words(own)) for own in build.commands):
            changed.add(name)
            builds[name] = replace(build, commands=varied_commands(build.commands, workspace, variant))
    return replace(regression, builds=builds), changed


def varied_commands(commands: Sequence[str], workspace: Workspace, variant: Variant) -> list[str]:
    """Commands with the variant's change; resources are filled in, `{out}` and builds are left to the new workspace."""
    unfilled = {name: f'{{{name}}}' for name in workspace.places}
    resources = {name: workspace.places[name] for name in workspace.regression.resources}
    changed = []
    for command in commands:
        words = [filled(word, unfilled | resources) for word in shlex.split(command)]
        record = recorded(workspace.words(command))
        changed.append(shlex.join(words if record is None else variant.change(words, record)))
    return changed


def _precisions(models: Iterable[Model], named: bool) -> list[Variant]:
    here = {model.precision for model in models}
    return [
        Variant('precision', flag, partial(model_commands.with_precision, precision=name), own_cache=named)
        for name, flag in PRECISIONS.items()
        if here != {name}
    ]


def _threads() -> list[Variant]:
    import torch

    numbers = sorted({1, os.cpu_count() or 1, 2} - {torch.get_num_threads()})
    return [
        Variant('threads', str(n), partial(model_commands.with_threads, threads=n), {'OMP_NUM_THREADS': str(n)})
        for n in numbers[:2]
    ]


def _tokenizers(models: Mapping[str, Model], folder: Path, named: bool) -> tuple[list[Variant], list[Untestable]]:
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.regression.blame.retokenized import READINGS, SameTokenizerError, retokenized

    found: list[Variant] = []
    cannot: list[Untestable] = []
    for reading in READINGS if models else ():
        folders: dict[str, str] = {}
        why = ''
        for name, model in models.items():
            made = folder / f'{Path(name).name}.{reading.replace(" ", "-")}.{_version(model)}'
            try:
                retokenized(open_checkpoint(name, checkpoint_kind(name) or 'encoders'), reading, made)
                folders[name] = str(made.resolve())
            except SameTokenizerError as error:
                why = why or str(error)
            except PyseriniRepbertError as error:
                why = str(error)
        if folders:
            renamed = partial(model_commands.with_checkpoints, folders=folders)
            found.append(Variant('tokenizer', reading, renamed, own_cache=named))
        else:
            cannot.append(Untestable('tokenizer', f'{reading}: {why}'))
    return found, cannot


def _version(model: Model) -> str:
    return hashlib.sha256(f'{model.weights} {model.tokenizer} {model.config}'.encode()).hexdigest()[:8]

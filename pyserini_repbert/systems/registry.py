"""The registry of systems: what a family of ranking models brings to this package.

A system is a folder of this package, what an extension adds, or a package of yours that is named
by an entry point of the group `pyserini_repbert.systems`. The `__init__` of a folder defines
`SYSTEM`. Nothing else lists systems.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.extension import by_name, entry_points, loaded

ENTRY_POINTS = 'pyserini_repbert.systems'


@dataclass(frozen=True)
class StageOption:
    """An option of a reranking stage, as in `NAME@K:seed=1`.

    Attributes
    ----------
    form : how it is written: 'seed=N'; 'METHOD' for one that is written without a key
    parameter : the reranker's keyword argument
    read : turns its text into a value; raises ValueError for a wrong one
    implies : other keyword arguments that it sets
    """

    form: str
    parameter: str
    read: Callable[[str], Any]
    implies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key before '='; the parameter for an option without a key."""
        key, equals, _ = self.form.partition('=')
        if equals:
            return key
        return self.parameter


@dataclass(frozen=True)
class WrappingOption(StageOption):
    """An option that stages of all systems take, also where a client of a service asks for them: it
    makes a stage that reads the index of the reranker of any stage.

    Attributes
    ----------
    wrap : 'MODULE:FUNCTION', from the reranker of a stage and the option's value to the reranker
        that takes its place
    """

    wrap: str = ''


def count_one_each(k: int, options: Mapping[str, Any]) -> int:
    """The model inputs of a reranker that reads each of its k candidates once."""
    return k


@dataclass(frozen=True)
class System:
    """A family of ranking models. Classes are named as 'MODULE:CLASS', and imported on first use.

    Attributes
    ----------
    name : the `ranking.system` in the config.json of its checkpoints
    title : its name in prose
    recognises : a function from a checkpoint's name, folder or open checkpoint to whether it is one
        of this system, for folders of others, whose config.json names no system
    description, advice : of such a folder, for the message where it does not serve: what it is, and
        how it is used
    query_encoder, document_encoder : a dense first stage's encoders, under Pyserini's contract,
        called with (checkpoint, device, **settings); the name of a recognised folder is not opened
    term_weights_encoder : a subclass of `encode.term_weights.TermWeightsEncoder`
    reranker : a subclass of `rerank.base.Reranker`, called with (checkpoint, device, **settings)
    task : a subclass of `tasks.task.Task`, which trains it
    group_size : how many candidates its training groups have; None: 2 or more
    training_settings : of `training` in a recipe, those that its task reads and others do not
    stage_options : the options of its reranking stages
    wrapping_option : the option by which stages of all systems become part of one of this system
    stage_depths : names that a stage may have instead of its depth K
    client_options : parameters that a client of the service may set
    reads_index : its reranker reads the index that is searched, and no checkpoint: a stage names it
        by the system's name
    count_inputs : the model inputs of a stage, from its depth and its options
    """

    name: str
    title: str
    recognises: str | None = None
    description: str = ''
    advice: str = ''
    query_encoder: str | None = None
    document_encoder: str | None = None
    term_weights_encoder: str | None = None
    reranker: str | None = None
    task: str | None = None
    group_size: int | None = None
    training_settings: tuple[str, ...] = ()
    stage_options: tuple[StageOption, ...] = ()
    wrapping_option: WrappingOption | None = None
    stage_depths: Mapping[str, int] = field(default_factory=dict)
    client_options: tuple[str, ...] = ()
    reads_index: bool = False
    count_inputs: Callable[[int, Mapping[str, Any]], int] = count_one_each


@cache
def systems() -> Mapping[str, System]:
    """All systems by name: the folders of this package, extensions, then entry points.

    Raises InputError for two systems of one name.
    """
    return by_name('system', _defined())


def _defined() -> Iterable[System]:
    """The `SYSTEM` of each folder, the systems of extensions, then entry points."""
    package = importlib.import_module('pyserini_repbert.systems')
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            yield importlib.import_module(f'{package.__name__}.{module.name}').SYSTEM
    yield from loaded('systems')
    for entry_point in entry_points(ENTRY_POINTS):
        yield entry_point.load()


def recognised_system(name: Any) -> System | None:
    """The system of a name, or one that recognises a folder by its files; None if none does.

    `name` is a catalog name, whose entry says its system, a folder, or an open checkpoint.
    """
    if isinstance(name, (str, Path)) and catalog.checkpoint_kind(str(name)) is not None:
        return None
    for system in systems().values():
        if system.reads_index and name == system.name:
            return system
        if system.recognises is not None and load(system.recognises)(name):
            return system
    return None


def reads_index(name: str) -> bool:
    """Whether the reranker of a name reads the index that is searched, and no checkpoint."""
    system = systems().get(name)
    return system is not None and system.reads_index


def trained_systems() -> list[str]:
    """The names of the systems that can be trained."""
    return [name for name, system in systems().items() if system.task]


def rerankers() -> list[str]:
    """The names of the systems that rerank."""
    return [name for name, system in systems().items() if system.reranker]


def stage_options() -> Mapping[str, StageOption]:
    """The options that stages of any system take, by key."""
    options: dict[str, StageOption] = {}
    for system in systems().values():
        for option in system.stage_options:
            options[option.key] = option
    return options


@cache
def wrapping_options() -> tuple[WrappingOption, ...]:
    """The options that stages of all systems take from other systems."""
    options: list[WrappingOption] = [
        system.wrapping_option
        for system in systems().values()
        if system.wrapping_option is not None
    ]
    return tuple(options)


def load(name: str) -> Any:
    """The class that 'MODULE:CLASS' names."""
    return pkgutil.resolve_name(name)

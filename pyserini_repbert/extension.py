"""What a removable folder adds: an `Extension`, and where extensions are found.

An extension is a package whose `__init__` defines `EXTENSION`: the folders `collection` and
`serve`, each folder of `extensions/`, and packages of yours that an entry point of the group
`pyserini_repbert.extensions` names. The rest of this package imports none of them, and finds them
here. An extension names what it brings, as 'module:attribute' below its package. Each is imported
on first use. So a command's help, or a search that needs nothing of an extension, does not load its
work.

    EXTENSION = Extension(
        name='songs',
        package=__name__,
        openers={'corpus': 'files:open_corpus'},
        commands={'index songs': Command('list the songs', 'command:run', 'command:add_flags')},
    )

Two words are as before: what a system brings is its `SYSTEM`, and what a kind of index brings is
its `KIND`; an extension names them. Why not pluggy: most of an extension's answers are data (a
name, a line of help). For these, a plugin manager would have to import every package's work.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import metadata
from typing import Any

from pyserini_repbert.errors import InputError

_ROOT = __name__.rpartition('.')[0]
ENTRY_POINTS = f'{_ROOT}.extensions'
# The parts that are extensions themselves, and the folder whose folders are.
_PARTS = ('collection', 'serve')
_SHELF = 'extensions'
# The commands in which extensions may have a part.
WITH_PARTS = ('search', 'rerank', 'explain', 'adapt', 'serve', 'index sync', 'index judgments')


@dataclass(frozen=True)
class Command:
    """A command, or an action of one.

    Attributes
    ----------
    help : a line for the list of commands or actions
    run : of a command: a function that takes the arguments; of an action: one that takes the parsed
        options; returns the exit status, or None for 0
    flags : of an action: a function that adds its flags to a parser
    """

    help: str
    run: str
    flags: str = ''


@dataclass(frozen=True)
class Representation:
    """What a model makes of each passage beside its dense vector, as collections store it: how it
    is called everywhere. `work` encodes, stores and scores, and is imported on first use.

    Attributes
    ----------
    name : in the record of a shard, and of the folder of what extensions keep of it: 'tokens'
    option : the argument of `Collection.open` that names the model: 'multi_vector'. The flag has
        dashes instead of underscores. 'sparse' is for models that rank instead of BM25
    ranking : what a collection calls its ranking by it: 'multi'
    what : the model in prose: 'multi-vector model'
    files : the names of the arrays that a shard may have
    work_name : an `encode.representations.RepresentationWork`, as 'MODULE:ATTRIBUTE'
    metavar : of a model in the help of the flag: 'FOLDER'
    help : of the flag: which models it takes, and what they do
    rescores : whether it scores the best hits of the other rankings, unless a user says
    has_vectors : whether scans find passages by it: its rows are
        `encode.representations.VectorRows`
    """

    name: str
    option: str
    ranking: str
    what: str
    files: tuple[str, ...]
    work_name: str
    metavar: str
    help: str
    rescores: bool = False
    has_vectors: bool = False

    @property
    def setting(self) -> str:
        """What the settings of a collection call the model: 'multi_vector_model'."""
        return f'{self.option}_model'

    @cached_property
    def work(self) -> Any:
        """What encodes, stores and scores: an `encode.representations.RepresentationWork`."""
        return pkgutil.resolve_name(self.work_name)


@dataclass(frozen=True)
class Extension:
    """What an extension adds, by 'module:attribute' below its package.

    Attributes
    ----------
    name : of the extension, as messages say it
    package : the package that defines it: `__name__`
    systems : families of models: each a `systems.registry.System`
    index_kinds : each an `indexes.kind.IndexKind`
    representations : what collections may store of a further model
    openers : functions that open a path or a name given by a user, by what is wanted: 'corpus',
        with the parameters of `names.corpora.open_corpus` by name; 'topics' and 'qrels', called
        with only the path or name; 'filter', with the text of a filter; 'search', with an open
        search, an `argument` of `Collection.search` or of a retriever, and maybe `rerankers`, gives
        a function from a question and k to hits; 'answered', with an open search and its
        `rerankers`, one from questions, their hits and what the search reported to P(answered) by
        qid. A function returns None for anything that it does not know. Extensions are asked first.
    commands : by what a user types: 'serve', 'index sync'
    options : what it adds to other commands, by the command's name: each a
        `commands.parts.CommandPart`, with its flags. The commands are 'search', 'rerank',
        'explain', 'adapt'; 'serve', which takes a `serve.service_parts.ServePart`; 'index sync',
        which takes a `collection.commands.parts.WritePart`; and 'index judgments', which takes a
        `JudgmentsPart`
    in_pipelines : what it adds to pipelines, fields of their spec too: a
        `pipeline.parts.PipelinePart`
    in_bundles : what it keeps in the folders of bundles: an `index.parts.BundlePart`
    in_collections : what it does in collections, when a generation is published and in their
        folders: a `collection.parts.CollectionPart`
    in_answers : what it adds to searches of the service, over HTTP and MCP: a
        `serve.answer_parts.AnswerPart`
    in_services : what it adds to a service: settings of an index, and work beside it: a
        `serve.service_parts.ServicePart`
    routes : of the service: each an `APIRouter` of FastAPI
    page : its part of the search page: the scripts and style sheets that a page loads, by the
        page, 'reader' or 'laboratory'; they are in the package's folder `page`. A script calls
        `addPart` of `js/parts.js`, which says what is shown where
    """

    name: str
    package: str
    systems: tuple[str, ...] = ()
    index_kinds: tuple[str, ...] = ()
    representations: tuple[Representation, ...] = ()
    openers: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    scans: tuple[str, ...] = ()
    in_pipelines: tuple[str, ...] = ()
    in_bundles: tuple[str, ...] = ()
    in_collections: tuple[str, ...] = ()
    in_answers: tuple[str, ...] = ()
    in_services: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    page: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """What 'module:attribute' names, imported on first use.

        Raises InputError for a module or an attribute that the package does not have.
        """
        full_name = f'{self.package}.{name}'
        module_name, _, attribute = full_name.partition(':')
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and module_name.startswith(error.name):
                raise self._lacks(full_name) from None
            if module_name.startswith(f'{_ROOT}.'):
                raise
            raise InputError(
                f"the extension '{self.name}' imports '{error.name}', which is not installed: "
                'install it, or uninstall the extension'
            ) from error
        if not hasattr(module, attribute):
            raise self._lacks(full_name)
        return getattr(module, attribute)

    def _lacks(self, name: str) -> InputError:
        return InputError(
            f"the extension '{self.name}' names {name}, which does not exist: correct the name in "
            f'its EXTENSION, or uninstall it'
        )


@cache
def extensions() -> Mapping[str, Extension]:
    """All extensions by name: the folders of this package, then entry points.

    Raises InputError for two extensions of one name.
    """
    return by_name('extension', _defined())


def by_name(what: str, defined: Iterable[Any]) -> dict[str, Any]:
    """What packages define, by its `name`; `what` it is, for the error.

    Raises InputError for two of one name.
    """
    names: dict[str, Any] = {}
    for named in defined:
        if named.name in names:
            raise InputError(
                f"two packages define the {what} '{named.name}': uninstall one of them"
            )
        names[named.name] = named
    return names


def _defined() -> Iterator[Extension]:
    """The `EXTENSION` of each folder, then entry points."""
    for package in _packages():
        yield importlib.import_module(package).EXTENSION
    for entry_point in entry_points(ENTRY_POINTS):
        try:
            yield entry_point.load()
        except (ImportError, AttributeError, TypeError) as error:
            raise InputError(
                f"the extension '{entry_point.name}' ({entry_point.value}) cannot be imported: "
                f'{error}; fix it, or uninstall its package'
            ) from error


@cache
def all_entry_points() -> Any:
    """What installed packages offer: it is read once, from the files of all of them."""
    return metadata.entry_points()


def entry_points(group: str) -> Iterable[metadata.EntryPoint]:
    """What installed packages offer to a group."""
    points: metadata.EntryPoints = all_entry_points().select(group=group)
    return points


def _packages() -> Iterator[str]:
    """The names of the packages that are there; some may have been removed."""
    names = {module.name for module in _modules(_ROOT)}
    for name in _PARTS:
        if name in names:
            yield f'{_ROOT}.{name}'
    if _SHELF in names:
        for module in _modules(f'{_ROOT}.{_SHELF}'):
            yield f'{_ROOT}.{_SHELF}.{module.name}'


def _modules(package: str) -> Iterator[pkgutil.ModuleInfo]:
    """The packages in a package, in the order of their names."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.ispkg:
            yield module


def loaded(hook: str) -> Iterator[Any]:
    """What all extensions add to a hook: 'systems', 'index_kinds', 'scans',
    'in_pipelines', 'in_bundles', 'in_collections', 'in_answers', 'in_services' or 'routes'.
    """
    for extension in extensions().values():
        for name in getattr(extension, hook):
            yield extension.load(name)


def open_by_extension(wanted: str, source: Any, **settings: Any) -> Any:
    """What an extension opens at a path or name; None if no extension knows it.

    Parameters
    ----------
    wanted : 'corpus', a key of `Extension.openers`
    source : a path or a name, as a user gives it, or as `Extension.openers` says
    settings : as `Extension.openers` says
    """
    for extension in extensions().values():
        name = extension.openers.get(wanted)
        if name is None:
            continue
        opened = extension.load(name)(source, **settings)
        if opened is not None:
            return opened
    return None


@cache
def representations() -> tuple[Representation, ...]:
    """What collections may store of passages beside dense vectors, in the order of their names.

    Raises InputError for two of one name.
    """
    brought: list[Representation] = []
    for extension in extensions().values():
        brought += extension.representations
    by_names = by_name('representation', brought)
    return tuple(by_names[name] for name in sorted(by_names))


@dataclass(frozen=True)
class ExtensionCommand:
    """A command, or a command's action, and the extension that brings it."""

    extension: Extension
    command: Command

    def run(self, options: Any) -> int:
        """Do it; returns the exit status. `options` is what `Command.run` takes."""
        return int(self.extension.load(self.command.run)(options) or 0)

    def add_flags(self, parser: Any) -> None:
        """Add the flags of an action to its parser."""
        self.extension.load(self.command.flags)(parser)


def commands_below(prefix: str = '') -> dict[str, ExtensionCommand]:
    """The commands of extensions by name; with `prefix`, the actions of this command."""
    commands: dict[str, ExtensionCommand] = {}
    for extension in extensions().values():
        for words, command in extension.commands.items():
            before, _, name = words.rpartition(' ')
            if before == prefix:
                if name in commands:
                    raise InputError(
                        f"the extensions '{commands[name].extension.name}' and '{extension.name}' "
                        f"both bring the command '{words}': uninstall one of them"
                    )
                commands[name] = ExtensionCommand(extension, command)
    return commands


def parts_of(command: str) -> list[Any]:
    """What extensions do in a command: each a `commands.parts.CommandPart`."""
    return [part for part, _ in _parts(command)]


def _parts(command: str) -> Iterator[tuple[Any, Extension]]:
    """What extensions do in a command, and which extension it is."""
    for extension in extensions().values():
        for asking in extension.options:
            if asking not in WITH_PARTS:
                raise InputError(
                    f"the extension '{extension.name}' has options of '{asking}', which takes "
                    f'none: expected {", ".join(WITH_PARTS)}'
                )
        name = extension.options.get(command)
        if name is not None:
            yield extension.load(name), extension


def add_flags_of(command: str, parser: Any) -> None:
    """Add the flags of extensions to a command's parser, an `argparse.ArgumentParser`.

    Raises InputError for a flag that the command has already.
    """
    for part, extension in _parts(command):
        try:
            part.add_flags(parser)
        except argparse.ArgumentError as error:
            raise InputError(
                f"the extension '{extension.name}' adds a flag that `{command}` has already "
                f'({error}): rename it, or uninstall the extension'
            ) from None

"""What a folder that can be taken away brings: an `Extension`, and where extensions are found.

An extension is a package whose `__init__` defines `EXTENSION`: the folders `collection` and
`serve`, each folder of `extensions/`, and packages of yours that an entry point of the group
`pyserini_repbert.extensions` names. The rest of this package imports none of them, and finds them
here. An extension says what it brings by names, as 'module:attribute' below its own package, which
are imported on first use. So a command's help, or a search that needs nothing of an extension, does
not load its work.

    EXTENSION = Extension(
        name='songs',
        package=__name__,
        openers={'corpus': 'files:open_corpus'},
        commands={'index songs': Command('list the songs', 'command:run', 'command:add_flags')},
    )

Two words are as before: what a system brings is its `SYSTEM`, and what a kind of index brings is
its `KIND`; an extension names them. Why no pluggy: what is asked of an extension is mostly data (a
name, a line of help), which a plugin manager would have to import each package's work for.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from pyserini_repbert.errors import InputError

_ROOT = __name__.rpartition('.')[0]
ENTRY_POINTS = f'{_ROOT}.extensions'
# The parts that are extensions themselves, and the folder whose folders are.
_PARTS = ('collection', 'serve')
_SHELF = 'extensions'
# What asks for the folders of that folder, by name: flags, actions, settings, stages, and files of
# indexes. An error names the one that was taken away.
_ASKED_BY = {
    'approximate': ('ann',),
    'confidence': ('confidence', 'min_confidence'),
    'following': ('follow',),
    'neighbours': ('neighbours',),
    'off_topic': ('off_topic',),
    'trials': ('try', 'trial'),
    'watching': ('watch', 'history'),
}


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
class Extension:
    """What an extension brings, by 'module:attribute' below its package.

    Attributes
    ----------
    name : of the extension, as messages say it
    package : the package that defines it: `__name__`
    systems : families of models: each a `systems.registry.System`
    index_kinds : each an `indexes.kind.IndexKind`
    openers : what opens a path or a name that a user gives, by what is wanted: 'corpus', with the
        parameters of `names.corpora.open_corpus` by name; 'topics' and 'qrels', with the path or
        name alone; 'filter', with the text of a filter; 'search', with an open search, an
        `argument` of `Collection.search` or of a retriever, and maybe `rerankers`, gives a function
        from a question and k to hits; 'answered', with an open search and its `rerankers`, one from
        questions, their hits and what the search reported to
        P(answered) by qid. It returns None for what it does not know, and is asked first.
    commands : by what a user types: 'serve', 'index sync'
    options : what it does in a command of others, by its name: each a
        `commands.parts.CommandPart`, with flags of its own; of 'index sync' and 'index add' a
        `collection.commands.parts.WritePart`
    scans : other ways than exact search to find the vectors nearest to a question's: each a
        `collection.scans.CollectionScan`
    in_bundles : what it keeps in the folders of bundles: an `index.parts.BundlePart`
    in_collections : what it does in collections, when a generation is published and in their
        folders: a `collection.parts.CollectionPart`
    in_answers : what it adds to searches of the service, over HTTP and MCP: a
        `serve.answer_parts.AnswerPart`
    in_services : what it adds to a service: settings of an index, and work beside it: a
        `serve.service_parts.ServicePart`
    routes : of the service: each an `APIRouter` of FastAPI
    page : its part of the search page: the scripts and style sheets that a page loads, by the
        page, 'reader' or 'laboratory'; they lie in the folder `page` of the package. A script
        calls `addPart` of `js/parts.js`, which says what is shown where
    """

    name: str
    package: str
    systems: tuple[str, ...] = ()
    index_kinds: tuple[str, ...] = ()
    openers: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    scans: tuple[str, ...] = ()
    in_bundles: tuple[str, ...] = ()
    in_collections: tuple[str, ...] = ()
    in_answers: tuple[str, ...] = ()
    in_services: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    page: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """What 'module:attribute' names, imported on first use."""
        return pkgutil.resolve_name(f'{self.package}.{name}')


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
        yield entry_point.load()


@cache
def all_entry_points() -> Any:
    """What installed packages offer: it is read once, from the files of all of them."""
    return metadata.entry_points()


def missing_extension(name: str) -> str:
    """A clause that names the extension which something is of, where it was taken away; '' for
    anything else.

    `name` is of a flag, an action, a setting, or a file in an index: '--ann', 'ann', '.ann.lock'.
    """
    words = set(re.split(r'[./=@ ]', name.lstrip('-').replace('-', '_')))
    for extension, asked_by in _ASKED_BY.items():
        if words.intersection(asked_by) and extension not in extensions():
            return f": install pyserini_repbert with its extension '{extension}'"
    return ''


def entry_points(group: str) -> Iterable[metadata.EntryPoint]:
    """What installed packages offer to a group."""
    points: metadata.EntryPoints = all_entry_points().select(group=group)
    return points


def _packages() -> Iterator[str]:
    """The names of the packages that are there; some may have been taken away."""
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
    """What all extensions bring for a hook: 'systems', 'index_kinds', 'scans', 'in_bundles',
    'in_collections', 'in_answers', 'in_services' or 'routes'.
    """
    for extension in extensions().values():
        for name in getattr(extension, hook):
            yield extension.load(name)


def open_by_extension(wanted: str, source: Any, **settings: Any) -> Any:
    """What an extension opens at a path or name; None where no extension knows it.

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


@dataclass(frozen=True)
class ExtensionCommand:
    """A command, or an action of one, and the extension that brings it."""

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
                commands[name] = ExtensionCommand(extension, command)
    return commands


def parts_of(command: str) -> list[Any]:
    """What extensions do in a command: each a `commands.parts.CommandPart`."""
    parts = []
    for extension in extensions().values():
        name = extension.options.get(command)
        if name is not None:
            parts.append(extension.load(name))
    return parts

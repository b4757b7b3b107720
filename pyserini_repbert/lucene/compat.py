"""Importing Pyserini's modules: the differences between Pyserini 1.6 and 2.x are handled here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.error import URLError

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import (
    JavaError,
    MismatchError,
    MissingDependencyError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.lucene.jvm import start_jvm
from pyserini_repbert.lucene.tables import keep_tables

_OPENAI_KEY = 'OPENAI_API_KEY'
_TABLES = {'sparse': 'TF_INDEX_INFO', 'impact': 'IMPACT_INDEX_INFO', 'dense': 'FAISS_INDEX_INFO'}


def pyserini_version() -> str:
    """The installed version of Pyserini ('1.6.0'). Raises MissingDependencyError without one."""
    try:
        return importlib.metadata.version('pyserini')
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError.of(
            'pyserini', "Lucene's indexes and Pyserini's topics"
        ) from error


def import_pyserini(module: str = 'pyserini') -> ModuleType:
    """Import a module of Pyserini by its full name, 'pyserini.search.lucene'.

    Starts the Java virtual machine first. Raises UnknownNameError if the installed Pyserini has no
    such module, MissingDependencyError if a package is missing, MissingResourceError if a download
    fails, JavaError if Java was started without Anserini, and MismatchError for any other failure.
    """
    version = pyserini_version()
    start_jvm()
    try:
        keep_tables()
        with placeholder_openai_key():
            return importlib.import_module(module)
    except PyseriniRepbertError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or 'unknown'
        if f'{module}.'.startswith(f'{missing}.'):
            near = did_you_mean(module, runnable_modules())
            raise UnknownNameError(f"Pyserini {version} has no module '{module}'{near}") from error
        raise MissingDependencyError.of(missing, f"Pyserini {version}'s {module}") from error
    except (URLError, ConnectionError, TimeoutError) as error:
        raise MissingResourceError(
            f'Pyserini {version} fetches something to import {module}, and could not ({error}): '
            'run it with a network'
        ) from error
    except Exception as error:
        if type(error).__name__ == 'JavaException':
            raise JavaError(
                f"the running Java lacks Anserini's classes ({error}): call start_jvm() before "
                'other code starts one'
            ) from error
        raise MismatchError(
            f'Pyserini {version} cannot import {module} ({type(error).__name__}: {error}): install '
            'its pinned packages'
        ) from error


@contextmanager
def placeholder_openai_key() -> Iterator[None]:
    """A context with an OpenAI key.

    Importing Pyserini 1.6 makes a client, which recent `openai` refuses without a key. A key that
    is already set does not change. A client with the placeholder cannot reach any server.
    """
    before = os.environ.get(_OPENAI_KEY)
    os.environ[_OPENAI_KEY] = before or 'unset'
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_OPENAI_KEY, None)
        else:
            os.environ[_OPENAI_KEY] = before


class EncoderMaps(NamedTuple):
    """Pyserini's tables of encoder classes by keyword; keywords match in the tables' order."""

    query: MutableMapping[str, Any]
    document: MutableMapping[str, Any]


def encoder_maps() -> EncoderMaps:
    """Pyserini's tables of encoder classes."""
    encode = import_pyserini('pyserini.encode')
    return EncoderMaps(
        query=_attribute(encode, 'query_encoder_class_map'),
        document=_attribute(encode, 'document_encoder_class_map'),
    )


def prebuilt_tables() -> dict[str, Mapping[str, Any]]:
    """Pyserini's tables of prebuilt indexes: 'sparse', 'impact', 'dense' (FAISS).

    A table has an entry for each name. Pyserini 2.x's tables are fetched when a name is looked up,
    and raise MissingResourceError if that fails.
    """
    info = import_pyserini('pyserini.prebuilt_index_info')
    return {kind: _attribute(info, name) for kind, name in _TABLES.items()}


class InstalledIndexes(dict[str, Any]):
    """This package's indexes, as the first source of a table of Pyserini 2.x."""


def add_index(table: Mapping[str, Any], name: str, entry: dict[str, Any]) -> None:
    """Put an index into one of Pyserini's tables, for all its modules.

    Tables of Pyserini 1.6 are dicts; tables of 2.x look a name up in their sources, one after the
    other.
    """
    if isinstance(table, MutableMapping):
        table[name] = entry
        return
    sources = _attribute(table, '_sources')
    for source in sources:
        if isinstance(source, InstalledIndexes):
            source[name] = entry
            return
    vars(table)['_sources'] = (InstalledIndexes({name: entry}), *sources)


def named_files(search: ModuleType, kind: str) -> Mapping[str, Any]:
    """Pyserini's entries of 'topics' or 'qrels' by name.

    `search` is its module pyserini.search._base. The table of 2.x is fetched, and raises
    MissingResourceError if that fails.
    """
    table: Mapping[str, Any] | None = getattr(search, f'{kind}_mapping', None)
    if table is None:
        table = _attribute(search, f'_get_{kind}_mapping')()
    return table


def path_of(search: ModuleType, kind: str, name: str) -> Path:
    """Where this Pyserini stores the file of a name in `named_files`, fetched or not."""
    entry = named_files(search, kind)[name]
    if not hasattr(search, 'JPath'):
        file = Path(entry['path'] if kind == 'topics' else entry)
        return Path(_attribute(search, f'_get_{kind}_cache_path')(), file.name)
    path = search.JPath.of(entry.path)
    if kind == 'topics':
        return Path(search.JTopicReader.getNewTopicsAbsPath(path).toString())
    return Path(search.JRelevanceJudgments.getNewQrelAbsPath(path).toString())


def topics_of_file(search: ModuleType, reader: str, path: Path) -> Mapping[Any, Any]:
    """The topics of a file by Anserini's reader, as `get_topics` of Pyserini gives them.

    Parameters
    ----------
    search : Pyserini's module pyserini.search._base
    reader : the name of a Java class
    path : of the file
    """
    read = getattr(search, 'get_topics_with_reader', None)
    if read is not None:
        topics: Mapping[Any, Any] = read(reader, str(path.absolute()))
        return topics
    # Pyserini 2.x has another name, and the two in another order.
    topics = _attribute(search, 'load_topics_from_file')(str(path.absolute()), reader)
    return topics


class ServerTables(NamedTuple):
    """Tables of Pyserini 2.x's server by index type ('faiss')."""

    factories: MutableMapping[str, Any]  # from a folder, from a name, arguments of a setting
    prebuilt: Mapping[str, Any]  # tables of prebuilt indexes


def server_tables() -> ServerTables | None:
    """The tables of Pyserini 2.x's server; None for Pyserini 1.6, whose server has none."""
    try:
        utils = import_pyserini('pyserini.server.utils')
    except UnknownNameError:
        return None
    return ServerTables(
        factories=_attribute(utils, 'SEARCHER_FACTORIES'),
        prebuilt=_attribute(utils, 'INDEX_TYPE'),
    )


def _attribute(owner: object, name: str) -> Any:
    """An attribute of Pyserini. Raises MismatchError if the installed version lacks it."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        where = getattr(owner, '__name__', type(owner).__name__)
        raise MismatchError(
            f'Pyserini {pyserini_version()} has no {name} in {where}: pip install '
            "'pyserini>=1.6,<3'; if it is such a version, it differs from those that this package "
            'was tested with (1.6.0 and 2.4.0)'
        ) from error


def runnable_modules() -> list[str]:
    """The full names of Pyserini's modules, sorted; found by their files, without importing any."""
    spec = importlib.util.find_spec('pyserini')
    if spec is None or not spec.origin:
        return []
    root = Path(spec.origin).parent
    modules = []
    for file in root.rglob('*.py'):
        path = file.relative_to(root).with_suffix('')
        names = path.parent.parts if path.name == '__init__' else path.parts
        is_private = any(name.startswith('_') for name in names)
        if names and not is_private:
            modules.append('.'.join(['pyserini', *names]))
    return sorted(modules)

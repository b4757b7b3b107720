"""Importing Pyserini's modules: the differences between Pyserini 1.6 and 2.x are handled here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any
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
    """Import a module of Pyserini by its full name, 'pyserini.search.lucene'; starts the Java
    virtual machine first.

    Raises UnknownNameError where the installed Pyserini has no such module, another error of ours
    for any failure.
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
        if error.name and (module == error.name or module.startswith(f'{error.name}.')):
            near = did_you_mean(module, runnable_modules())
            raise UnknownNameError(f"Pyserini {version} has no module '{module}'{near}") from error
        raise MissingDependencyError.of(
            error.name or 'unknown', f"Pyserini {version}'s {module}"
        ) from error
    except (URLError, ConnectionError, TimeoutError) as error:
        raise MissingResourceError(
            f'Pyserini {version} fetches something to import {module}, and could not ({error}): '
            f'run it with a network'
        ) from error
    except Exception as error:
        if type(error).__name__ == 'JavaException':
            raise JavaError(
                f"the running Java lacks Anserini's classes ({error}): call start_jvm() before "
                f'other code starts one'
            ) from error
        raise MismatchError(
            f'Pyserini {version} cannot import {module} ({type(error).__name__}: {error}): '
            f'install its pinned packages'
        ) from error


@contextmanager
def placeholder_openai_key() -> Iterator[None]:
    """A context with an OpenAI key: importing Pyserini 1.6 makes a client, which recent `openai`
    refuses without a key.

    A key that is set is left alone; a client made with the placeholder can reach nothing.
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


def encoder_maps() -> tuple[MutableMapping[str, Any], MutableMapping[str, Any]]:
    """Pyserini's tables of query and document encoder classes by keyword; keywords match in the
    tables' order.
    """
    encode = import_pyserini('pyserini.encode')
    return _attribute(encode, 'query_encoder_class_map'), _attribute(
        encode, 'document_encoder_class_map'
    )


def prebuilt_tables() -> dict[str, Mapping[str, Any]]:
    """Pyserini's tables of prebuilt indexes: 'sparse', 'impact', 'dense' (FAISS); each name -> its
    entry.

    Those of Pyserini 2.x are fetched when a name is looked up, and raise MissingResourceError where
    that fails.
    """
    info = import_pyserini('pyserini.prebuilt_index_info')
    return {kind: _attribute(info, name) for kind, name in _TABLES.items()}


class InstalledIndexes(dict[str, Any]):
    """This package's indexes, as the first source of a table of Pyserini 2.x."""


def add_index(table: Mapping[str, Any], name: str, entry: dict[str, Any]) -> None:
    """Put an index into one of Pyserini's tables, for all its modules.

    Tables of Pyserini 1.6 are dicts; those of 2.x look a name up in their sources, one after the
    other.
    """
    if isinstance(table, MutableMapping):
        table[name] = entry
        return
    sources = _attribute(table, '_sources')
    installed = next((source for source in sources if isinstance(source, InstalledIndexes)), None)
    if installed is None:
        installed = InstalledIndexes()
        vars(table)['_sources'] = (installed, *sources)
    installed[name] = entry


def named_files(search: ModuleType, kind: str) -> Mapping[str, Any]:
    """Pyserini's entries of 'topics' or 'qrels' by name; `search` is its module
    pyserini.search._base.

    The table of 2.x is fetched, and raises MissingResourceError where that fails.
    """
    table: Mapping[str, Any] | None = getattr(search, f'{kind}_mapping', None)
    return _attribute(search, f'_get_{kind}_mapping')() if table is None else table


def place_of(search: ModuleType, kind: str, name: str) -> Path:
    """The path of the file of a name in `named_files`, where this Pyserini stores it, fetched or
    not.
    """
    entry = named_files(search, kind)[name]
    if not hasattr(search, 'JPath'):
        file = Path(entry['path'] if kind == 'topics' else entry)
        return Path(_attribute(search, f'_get_{kind}_cache_path')(), file.name)
    path = search.JPath.of(entry.path)
    if kind == 'topics':
        return Path(search.JTopicReader.getNewTopicsAbsPath(path).toString())
    return Path(search.JRelevanceJudgments.getNewQrelAbsPath(path).toString())


def server_tables() -> tuple[MutableMapping[str, Any], Mapping[str, Any]] | None:
    """Two tables of Pyserini 2.x's server by index type ('faiss'); None for Pyserini 1.6, whose
    server has none.

    The first has how to open a searcher (from a folder, from a name, arguments of a setting), the
    second a table of prebuilt indexes.
    """
    with suppress(UnknownNameError):
        utils = import_pyserini('pyserini.server.utils')
        return _attribute(utils, 'SEARCHER_FACTORIES'), _attribute(utils, 'INDEX_TYPE')
    return None


def _attribute(owner: object, name: str) -> Any:
    """An attribute of Pyserini. Raises MismatchError where the installed version lacks it."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        where = getattr(owner, '__name__', type(owner).__name__)
        raise MismatchError(
            f'Pyserini {pyserini_version()} has no {name} in {where}: pip install '
            f"'pyserini>=1.6,<3'; if it is such a "
            'version, it differs from those that this package was tested with (1.6.0 and 2.4.0)'
        ) from error


def runnable_modules() -> list[str]:
    """The full names of Pyserini's modules, sorted; found by their files, without importing any."""
    spec = importlib.util.find_spec('pyserini')
    if spec is None or not spec.origin:
        return []
    root = Path(spec.origin).parent
    paths = (path.relative_to(root).with_suffix('') for path in root.rglob('*.py'))
    names = (path.parent.parts if path.name == '__init__' else path.parts for path in paths)
    return sorted(
        '.'.join(['pyserini', *parts])
        for parts in names
        if parts and not any(p[0] == '_' for p in parts)
    )

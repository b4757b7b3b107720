"""Importing Pyserini's modules: the only file that knows Pyserini 1.6 from 2.x."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from pyserini_repbert.errors import JavaError, MismatchError, MissingDependencyError, UnknownNameError
from pyserini_repbert.pyserini_bridge.jvm import start_jvm

_OPENAI_KEY = 'OPENAI_API_KEY'


def pyserini_version() -> str:
    """The installed version of Pyserini ('1.6.0'). Raises MissingDependencyError without one."""
    try:
        return importlib.metadata.version('pyserini')
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError.of('pyserini', "Lucene's indexes and Pyserini's topics") from error


def import_pyserini(module: str = 'pyserini') -> ModuleType:
    """Import a module of Pyserini, with the Java virtual machine started first.

    Parameters
    ----------
    module : its full name, 'pyserini.search.lucene'

    Raises
    ------
    MissingDependencyError
        when Pyserini, or a package that this module of it needs, is not installed
    UnknownNameError
        when the installed Pyserini has no such module
    JavaError
        when no virtual machine runs or it lacks Anserini's classes
    """
    version = pyserini_version()
    start_jvm()
    try:
        with placeholder_openai_key():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f'{error.name}.')):
            raise UnknownNameError(f"Pyserini {version} has no module '{module}'{suggestion(module)}") from error
        raise MissingDependencyError.of(error.name or 'unknown', f"Pyserini {version}'s {module}") from error
    except ImportError as error:
        raise MissingDependencyError(
            f'Pyserini {version} cannot import {module} ({error}): pip install --force-reinstall pyserini=={version}'
        ) from error
    except Exception as error:
        if type(error).__name__ == 'JavaException':
            raise JavaError(
                f"the running Java lacks Anserini's classes ({error}): call start_jvm() before other code starts one"
            ) from error
        raise MismatchError(
            f'Pyserini {version} cannot import {module} ({type(error).__name__}: {error}): install its pinned packages'
        ) from error


@contextmanager
def placeholder_openai_key() -> Iterator[None]:
    """An OpenAI key for the time of an import: Pyserini 1.6 makes a client then, which recent `openai` refuses keyless.

    A key that is set stays as it is; a client made with the placeholder can reach nothing.
    """
    if os.environ.get(_OPENAI_KEY):
        yield
        return
    before = os.environ.get(_OPENAI_KEY)
    os.environ[_OPENAI_KEY] = 'unset'
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_OPENAI_KEY, None)
        else:
            os.environ[_OPENAI_KEY] = before


def encoder_maps() -> tuple[MutableMapping[str, Any], MutableMapping[str, Any]]:
    """Pyserini's tables of query and document encoder classes by keyword; keywords match in the tables' order.

    Raises MismatchError when the installed Pyserini has no such tables.
    """
    encode = import_pyserini('pyserini.encode')
    try:
        return encode.query_encoder_class_map, encode.document_encoder_class_map
    except AttributeError as error:
        raise MismatchError(
            f"Pyserini {pyserini_version()} has no encoder tables: pip install 'pyserini>=1.6,<3'"
        ) from error


def prebuilt_tables() -> dict[str, dict[str, Any]]:
    """Pyserini's tables of prebuilt indexes: 'sparse', 'impact', 'dense' (FAISS); each name -> its entry."""
    info = import_pyserini('pyserini.prebuilt_index_info')
    tables = {'sparse': 'TF_INDEX_INFO', 'impact': 'IMPACT_INDEX_INFO', 'dense': 'FAISS_INDEX_INFO'}
    return {kind: getattr(info, table, {}) for kind, table in tables.items()}


def suggestion(module: str) -> str:
    """'; did you mean …?' over the modules of Pyserini that can be run, or nothing."""
    spec = importlib.util.find_spec('pyserini')
    if spec is None or not spec.submodule_search_locations:
        return ''
    close = difflib.get_close_matches(module, runnable_modules(), n=3)
    return f'; did you mean {" or ".join(close)}?' if close else ''


def runnable_modules() -> list[str]:
    """Names of Pyserini's modules, found by their files: nothing is imported."""
    import pkgutil

    spec = importlib.util.find_spec('pyserini')
    if spec is None or not spec.submodule_search_locations:
        return []
    names = []
    folders = [('pyserini', list(spec.submodule_search_locations))]
    while folders:
        package, paths = folders.pop()
        for entry in pkgutil.iter_modules(paths):
            if entry.name.startswith('_'):
                continue
            name = f'{package}.{entry.name}'
            names.append(name)
            if entry.ispkg:
                folders.append((name, [os.path.join(path, entry.name) for path in paths]))
    return sorted(names)

"""Topics and judgments by name: a file, a name of our catalog, or a name of Pyserini's; only the last starts a JVM."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.download import is_offline
from pyserini_repbert.errors import (
    JavaError,
    MissingDependencyError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.pyserini_bridge.compat import import_pyserini, named_files, place_of
from pyserini_repbert.pyserini_bridge.jvm import java_reason, quiet_java
from pyserini_repbert.ranking import Query
from pyserini_repbert.topics import Qrels, read_qrels, read_topics


def load_topics(spec: str) -> list[Query]:
    """The topics of a file, a catalog name, or one of Pyserini's topics names, looked up in this order.

    Pyserini's topics come in ascending order of their qids (as numbers where all are), and qids are strings here
    although Pyserini gives numeric ones as int.

    Raises
    ------
    InputError
        for a malformed file
    UnknownNameError
        with the nearest names
    MissingResourceError
        when Pyserini has to download the topics and cannot
    """
    path = _file('topics', spec)
    if path is not None:
        return read_topics(path)
    search = _pyserini_search('topics', spec)
    _check_reachable('topics', spec, search)
    try:
        found = search.get_topics(spec)
    except Exception as error:
        raise _unreachable('topics', spec, search, error) from error
    numeric = all(isinstance(qid, int) for qid in found)
    ordered = sorted(found, key=None if numeric else str)
    return [Query(str(qid), ' '.join(str(found[qid].get('title') or '').split())) for qid in ordered]


def load_qrels(spec: str) -> Qrels:
    """The judgments of a file, a catalog name, or one of Pyserini's qrels names, looked up in this order.

    Raises what `load_topics` raises.
    """
    path = _file('qrels', spec)
    if path is not None:
        return read_qrels(path)
    search = _pyserini_search('qrels', spec)
    _check_reachable('qrels', spec, search)
    try:
        found = Path(search.get_qrels_file(spec))
    except Exception as error:
        raise _unreachable('qrels', spec, search, error) from error
    return read_qrels(found)


def _file(kind: str, spec: str) -> Path | None:
    """The file that `spec` is, or that the catalog has for it; None when Pyserini has to be asked."""
    path = Path(spec)
    if path.exists():
        return path
    return catalog.file(kind, spec)


def _pyserini_search(kind: str, spec: str) -> Any:
    """Pyserini's module with the registries; refuses a name that it does not have."""
    own = list(catalog.entries(kind))
    if '/' in spec or '\\' in spec:
        raise UnknownNameError(f"there is no {kind} file '{spec}': check the path")
    try:
        search = import_pyserini('pyserini.search._base')
        registry = named_files(search, kind)
    except (JavaError, MissingDependencyError, MissingResourceError) as error:
        near = catalog.did_you_mean(spec, own)
        raise UnknownNameError(
            f"'{spec}' is neither a {kind} file nor in the catalog ({', '.join(own)}){near}; "
            f"Pyserini's names could not be looked up: {error}"
        ) from error
    if spec not in registry:
        close = difflib.get_close_matches(spec, [*own, *registry], n=4, cutoff=0.5)
        near = f'; did you mean {", ".join(close)}?' if close else f': the catalog has {", ".join(own)}'
        raise UnknownNameError(f"'{spec}' is neither a {kind} file nor a name in the catalog or in Pyserini{near}")
    quiet_java()
    return search


def _check_reachable(kind: str, spec: str, search: Any) -> None:
    if is_offline() and not place_of(search, kind, spec).exists():
        raise _unreachable(kind, spec, search, PyseriniRepbertError('downloads are off'))


def _unreachable(kind: str, spec: str, search: Any, error: Exception) -> MissingResourceError:
    path = place_of(search, kind, spec)
    reason = java_reason(error)
    if path.is_file():
        return MissingResourceError(
            f"Pyserini's {kind} '{spec}' at {path} cannot be read ({reason}): delete the file, it is then fetched again"
        )
    return MissingResourceError(
        f"Pyserini's {kind} '{spec}' are not here and could not be fetched ({reason}): put {path.name} at {path}"
    )

"""Pyserini's prebuilt Lucene indexes, topics and judgments by name. Looking one up starts a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.download import is_offline
from pyserini_repbert.errors import (
    JavaError,
    MissingDependencyError,
    MissingResourceError,
    UnknownNameError,
)
from pyserini_repbert.files import human_size
from pyserini_repbert.lucene.compat import import_pyserini, named_files, place_of, prebuilt_tables
from pyserini_repbert.lucene.jvm import java_reason, quiet_java
from pyserini_repbert.ranking import Query


def prebuilt_index(name: str, download: bool = False) -> Path:
    """The folder of a prebuilt index of Lucene, of words or of impacts, by Pyserini's name
    ('msmarco-v1-passage').

    With `download`, it is fetched if Pyserini's cache lacks it. Raises UnknownNameError for an
    unknown name, with the nearest names, MissingResourceError where the index is not there and is
    not downloaded.
    """
    tables = prebuilt_tables()
    lucene = (tables['sparse'], tables['impact'])
    entry = next((table[name] for table in lucene if name in table), None)
    if entry is None:
        near = catalog.did_you_mean(name, [known for table in lucene for known in table])
        raise UnknownNameError(
            f"'{name}' is neither a folder of a Lucene index nor a prebuilt index of Pyserini{near}"
        )
    util = import_pyserini('pyserini.util')
    place = Path(util.get_cache_home()) / 'indexes'
    # Pyserini 1.6's check_downloaded derives the folder from the address, while the folder is named
    # after the file
    unpacked = (
        place / f'{str(entry.get("filename", "")).removesuffix(".tar.gz")}.{entry.get("md5")}'
    )
    packed = int(
        entry.get('size compressed (bytes)', entry.get('size')) or 0
    )  # of Pyserini 1.6, of 2.x
    size = human_size(packed) if packed > 0 else 'size unknown'
    by_hand = f'fetch {entry["urls"][0]} ({size}) and unpack it below {place}'
    if (is_offline() or not download) and not unpacked.is_dir() and not util.check_downloaded(name):
        why = 'downloads are off' if is_offline() else 'it has to be downloaded first'
        message = f"prebuilt index '{name}' is not here and {why}: have it downloaded, or {by_hand}"
        raise MissingResourceError(message, parameters=('download',))
    try:
        return Path(util.download_prebuilt_index(name, verbose=False))
    # Pyserini raises ValueError, AssertionError (checksum) and what its libraries raise
    except Exception as error:
        raise MissingResourceError(
            f"prebuilt index '{name}' could not be fetched ({error}): try again, or {by_hand}"
        ) from error


def pyserini_topics(name: str) -> list[Query]:
    """Pyserini's topics of a name, in ascending order of their qids (as numbers where all are
    numeric).

    qids are strings here, although Pyserini gives numeric ones as int. Raises UnknownNameError for
    an unknown name, with the nearest names, MissingResourceError where Pyserini has to download the
    topics and cannot.
    """
    search = _pyserini_search('topics', name)
    topics_by_qid = _fetched('topics', name, search, search.get_topics)
    ordered = sorted(
        topics_by_qid, key=None if all(isinstance(qid, int) for qid in topics_by_qid) else str
    )
    return [
        Query(str(qid), ' '.join(str(topics_by_qid[qid].get('title') or '').split()))
        for qid in ordered
    ]


def pyserini_qrels(name: str) -> Path:
    """The file of Pyserini's judgments of a name. Raises what `pyserini_topics` raises."""
    search = _pyserini_search('qrels', name)
    return Path(_fetched('qrels', name, search, search.get_qrels_file))


def _fetched(kind: str, name: str, search: Any, fetch: Callable[[str], Any]) -> Any:
    path = place_of(search, kind, name)
    try:
        if is_offline() and not path.exists():
            raise OSError('downloads are off')
        return fetch(name)
    except Exception as error:
        what = f"Pyserini's {kind} '{name}'"
        reason = java_reason(error)
        if path.is_file():
            advice = (
                f'at {path} cannot be read ({reason}): delete the file, it is then fetched again'
            )
        else:
            advice = f'are not here and could not be fetched ({reason}): put {path.name} at {path}'
        raise MissingResourceError(f'{what} {advice}') from error


def _pyserini_search(kind: str, spec: str) -> Any:
    """Pyserini's module of topics and judgments.

    Raises UnknownNameError for a name that it does not have.
    """
    catalog_names = list(catalog.entries(kind))
    listed = ', '.join(catalog_names)
    if '/' in spec or '\\' in spec:
        raise UnknownNameError(f"there is no {kind} file '{spec}': check the path")
    try:
        search = import_pyserini('pyserini.search._base')
        registry = named_files(search, kind)
    except (JavaError, MissingDependencyError, MissingResourceError) as error:
        near = catalog.did_you_mean(spec, catalog_names)
        raise UnknownNameError(
            f"'{spec}' is neither a {kind} file nor in the catalog ({listed}){near}; "
            f"Pyserini's names could not be looked up: {error}"
        ) from error
    if spec not in registry:
        near = (
            catalog.did_you_mean(spec, [*catalog_names, *registry]) or f': the catalog has {listed}'
        )
        raise UnknownNameError(
            f"'{spec}' is neither a {kind} file nor a name in the catalog or in Pyserini{near}"
        )
    quiet_java()
    return search

"""Pyserini's prebuilt Lucene indexes, topics and judgments by name. Looking one up starts a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.data.trec_topics import ARTICLES
from pyserini_repbert.errors import (
    InputError,
    JavaError,
    MissingDependencyError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.files import human_size
from pyserini_repbert.lucene.compat import (
    import_pyserini,
    named_files,
    path_of,
    prebuilt_tables,
    topics_of_file,
)
from pyserini_repbert.lucene.jvm import java_reason, quiet_java
from pyserini_repbert.lucene.published import published_file, published_names
from pyserini_repbert.offline import is_offline
from pyserini_repbert.ranking import Query

# Where Anserini's readers put the question. The second is of TREC-COVID, Epidemic QA, BRIGHT and
# ViDoRe, the third of M-BEIR.
_QUESTION_FIELDS = ('title', 'query', 'query_txt')
# What M-BEIR writes if a question is an image
_NO_TEXT = {'query_txt': 'null'}


def prebuilt_index(name: str, download: bool = False) -> Path:
    """The folder of a prebuilt index of Lucene by Pyserini's name ('msmarco-v1-passage').

    The index is of words or of impacts. With `download`, it is fetched if Pyserini's cache lacks
    it. Raises UnknownNameError for an unknown name, with the nearest names, MissingResourceError
    if the index is missing and is not downloaded.
    """
    entry = _prebuilt_entry(name)
    util = import_pyserini('pyserini.util')
    folder = Path(util.get_cache_home()) / 'indexes'
    # Pyserini 1.6's check_downloaded derives the folder from the address, while the folder is named
    # after the file.
    file_name = str(entry.get('filename', ''))
    unpacked = folder / f'{file_name.removesuffix(".tar.gz")}.{entry.get("md5")}'
    by_hand = f'fetch {entry["urls"][0]} ({_size(entry)}) and unpack it below {folder}'
    may_download = download and not is_offline()
    if not may_download and not unpacked.is_dir() and not util.check_downloaded(name):
        why = 'downloads are off' if is_offline() else 'it has to be downloaded first'
        message = f"prebuilt index '{name}' is missing, and {why}: have it downloaded, or {by_hand}"
        raise MissingResourceError(message, parameters=('download',))
    try:
        return Path(util.download_prebuilt_index(name, verbose=False))
    # Pyserini raises ValueError, AssertionError (checksum) and what its libraries raise
    except Exception as error:
        raise MissingResourceError(
            f"prebuilt index '{name}' could not be fetched ({error}): try again, or {by_hand}"
        ) from error


def _prebuilt_entry(name: str) -> Mapping[str, Any]:
    """Pyserini's entry of a prebuilt index of Lucene. Raises UnknownNameError for no such name."""
    tables = prebuilt_tables()
    known: list[str] = []
    for kind in ('sparse', 'impact'):
        table = tables[kind]
        if name in table:
            entry: Mapping[str, Any] = table[name]
            return entry
        known += table
    near = catalog.did_you_mean(name, known)
    raise UnknownNameError(
        f"'{name}' is neither a folder of a Lucene index nor a prebuilt index of Pyserini{near}"
    )


def _size(entry: Mapping[str, Any]) -> str:
    """The size of a packed index, in words."""
    # The first key is of Pyserini 1.6, the second of 2.x.
    n_bytes = int(entry.get('size compressed (bytes)', entry.get('size')) or 0)
    return human_size(n_bytes) if n_bytes > 0 else 'size unknown'


def pyserini_topics(name: str) -> list[Query]:
    """Pyserini's topics of a name, in ascending order of their qids.

    They are ordered as numbers where all qids are numeric. qids are strings here, although
    Pyserini gives numeric ones as int. Raises UnknownNameError for an unknown name, with the
    nearest names, MissingResourceError if Pyserini has to download the topics and cannot,
    InputError for topics without text: vectors, images of queries, or docids of articles.
    """
    search = _pyserini_search('topics', name)
    published = published_file('topics', name)
    if published is not None and name not in named_files(search, 'topics'):
        path = published.fetch()

        def read_topics() -> Any:
            return topics_of_file(search, published.reader, path)

        topics_by_qid = _read(path, read_topics, f"topics '{name}'")
    else:
        topics_by_qid = _fetched('topics', name, search, search.get_topics)
    if any('url' in fields for fields in topics_by_qid.values()):
        raise InputError(f"topics '{name}': {ARTICLES}")
    are_numeric = all(isinstance(qid, int) for qid in topics_by_qid)
    topics = []
    for qid in sorted(topics_by_qid, key=None if are_numeric else str):
        topics.append(Query(str(qid), question_of(topics_by_qid[qid])))
    if not any(topic.text for topic in topics):
        has_vectors = any('vector' in fields for fields in topics_by_qid.values())
        content = 'vectors of queries' if has_vectors else 'queries of another kind'
        raise InputError(
            f"topics '{name}' are {content}, without text: give the name of topics that have text, "
            "without an encoder's name in it"
        )
    return topics


def question_of(fields: Mapping[str, Any]) -> str:
    """The question among the fields of a topic, in one line; '' for a topic without text."""
    for field in _QUESTION_FIELDS:
        text = ' '.join(str(fields.get(field) or '').split())
        if text and text != _NO_TEXT.get(field):
            return text
    return ''


def pyserini_qrels(name: str) -> Path:
    """The file of Pyserini's judgments of a name. Raises what `pyserini_topics` raises.

    Names in the table are fetched without Java.
    """
    published = published_file('qrels', name)
    if published is not None:
        try:
            return published.fetch()
        except MissingResourceError:
            # Pyserini may have fetched them earlier.
            kept = _kept('qrels', name)
            if kept is None:
                raise
            return kept
    search = _pyserini_search('qrels', name)
    return Path(_fetched('qrels', name, search, search.get_qrels_file))


def _kept(kind: str, name: str) -> Path | None:
    """The file of a name in Pyserini's own cache; None if it is missing."""
    try:
        search = _pyserini_search(kind, name)
        path = path_of(search, kind, name)
    except (PyseriniRepbertError, LookupError):
        return None
    return path if path.is_file() else None


def _fetched(kind: str, name: str, search: Any, fetch: Callable[[str], Any]) -> Any:
    """What `fetch` gives for a name; an error of its says what to do."""
    path = path_of(search, kind, name)
    published = published_file(kind, name)
    if published is not None and published.file == path.name and not path.exists():
        published.fetch(path)
    if is_offline() and not path.exists():
        raise MissingResourceError(
            f"Pyserini's {kind} '{name}' are not here and could not be fetched (downloads are "
            f'off): put {path.name} at {path}'
        )
    return _read(path, lambda: fetch(name), f"Pyserini's {kind} '{name}'")


def _read(path: Path, read: Callable[[], Any], what: str) -> Any:
    """What `read` gives of a file; an error of its says what to do.

    Parameters
    ----------
    path : of the file
    read : Pyserini's function, which may fetch it
    what : the file holds, for errors
    """
    try:
        return read()
    except Exception as error:
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
            f"'{spec}' is neither a {kind} file nor in the catalog ({listed}){near}; Pyserini's "
            f'names could not be looked up: {error}'
        ) from error
    if spec not in registry and published_file(kind, spec) is None:
        names = [*catalog_names, *registry, *published_names(kind)]
        near = catalog.did_you_mean(spec, names)
        near = near or f': the catalog has {listed}'
        raise UnknownNameError(
            f"'{spec}' is neither a {kind} file nor a name in the catalog or in Pyserini{near}"
        )
    quiet_java()
    return search

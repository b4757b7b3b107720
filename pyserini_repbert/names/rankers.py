"""What a ranker's name means: a sparse technique, a checkpoint's system, a class."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.files import StrPath, cache_folder
from pyserini_repbert.lucene.index_record import EPIC_IMPACT, built_variant
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.ranking import Ranker

if TYPE_CHECKING:
    from pyserini_repbert.lucene.sparse_settings import SparseSettings

_FORM = re.compile(r'[^\W\d][\w.]*:[^\W\d]\w*')


def system_of(folder: StrPath) -> str | None:
    """The `ranking.system` in a checkpoint folder's config.json; None without one."""
    try:
        config = parse_json((Path(folder) / 'config.json').read_text(encoding='utf-8'))
        system = config['ranking']['system']
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(system)


def names_class(name: str) -> bool:
    """Whether a name has the form `MODULE:CLASS`, and is not a file or folder."""
    return bool(_FORM.fullmatch(name)) and not Path(name).exists()


def refuse_code(name: str, file: StrPath, allows: str) -> None:
    """Raise InputError for a name of code in a file: the author of the file would run it.

    Parameters
    ----------
    name : 'MODULE:CLASS', also with '@' and an argument for the class or the stage
    file : that has the name
    allows : the parameter by which a user names the code
    """
    class_name, _, _ = name.partition('@')
    if names_class(class_name):
        raise InputError(
            f"{file} names the code '{name}', and code that a file names is not run: if you know "
            'it, name it yourself',
            parameters=(allows,),
        )


def named_object(name: str) -> Any:
    """What `MODULE:NAME` names. Raises InputError if Python does not find it."""
    module, _, attribute = name.partition(':')
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"'{name}': {error}; expected MODULE:CLASS, the module's folder in PYTHONPATH"
        ) from error


def ranker_class(name: str, searches: bool) -> type[Ranker]:
    """The class that `MODULE:CLASS` names: a first stage or a reranker.

    Raises InputError for a module that Python does not find (in the working directory or by
    PYTHONPATH), and for a name that leads to no such class.
    """
    chosen = named_object(name)
    is_ranker = inspect.isclass(chosen) and issubclass(chosen, Ranker)
    if not is_ranker or (chosen.reads is None) != searches:
        wanted = 'first stage: subclass Ranker' if searches else 'reranker: subclass Reranker'
        raise InputError(f"'{name}' is not a {wanted}")
    ranker: type[Ranker] = chosen
    return ranker


def arguments_of(
    kind: Any, name: str, options: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The keyword arguments to call a ranker's class with.

    Parameters
    ----------
    kind : the class
    name : what the user called it, for errors
    options : arguments that the class must have
    settings : arguments that are passed on if the class has them

    Raises InputError for an option that the class lacks.
    """
    known = inspect.signature(kind).parameters
    for option in options:
        if option not in known:
            raise InputError(f"'{name}' ({kind.__name__}) has no option '{option}': leave it out")
    arguments = {
        key: value for key, value in settings.items() if key in known and value is not None
    }
    return arguments | dict(options)


def find_sparse(
    spec: str,
    index: str | None = None,
    on_build: OnBuild = build_silently,
    download: bool = False,
) -> tuple[Path, SparseSettings | None]:
    """The Lucene index that a sparse technique means, and how it is searched.

    The settings are None if the index is searched as it was built for.

    Parameters
    ----------
    spec : 'TECHNIQUE', 'TECHNIQUE@INDEX', or the FOLDER of a Lucene index alone, which is searched
        as its own record says (without a record: BM25); TECHNIQUE is one of the catalog's `sparse`,
        INDEX a folder, a prebuilt index of Pyserini, or an index or a collection of the catalog
        (for a collection that ships with this package, the Lucene index is built on first use)
    index : for a technique without INDEX: an index or a collection of the catalog
    on_build : called with the folder before an index is built
    download : fetch a prebuilt index that is missing (gigabytes)

    A collection is refused by its file, before Lucene looks for its own.

    Raises MissingResourceError for an index that the user has to download or build first,
    MismatchError for a technique that scores words, on an index of EPIC's impacts.
    """
    from pyserini_repbert.lucene.searcher import index_folder

    technique, _, named = spec.partition('@')
    if catalog.find('sparse', technique) is None and Path(spec).exists():
        return index_folder(spec), None
    entry = catalog.get('sparse', technique)
    location: str | Path = named
    if not named or _collection(named) is not None:
        location = _index_for(entry, named or index, on_build)
    # Help needs only the names.
    from pyserini_repbert.index.manifest import is_collection

    if is_collection(Path(location)):
        raise InputError(
            f"'{location}' is a collection, which is searched by its name: give it as the index, "
            "with the ranking 'bm25'",
            parameters=('index', 'rankings'),
        )
    from pyserini_repbert.lucene.sparse_settings import SparseSettings

    folder = index_folder(location, download)
    if built_variant(folder) == EPIC_IMPACT:
        raise MismatchError(
            f"index {folder} holds EPIC's impacts, which '{technique}' cannot score: name the "
            f'folder alone, {folder}'
        )
    return folder, SparseSettings(**entry.values['settings'])


def _index_for(entry: catalog.Entry, index: str | None, on_build: OnBuild) -> str | Path:
    """The index for a technique without INDEX.

    It is given, prebuilt by Pyserini, or built from a shipped collection.
    """
    source = _collection(index)
    if source is None:
        needed = f"'{entry.name}' needs a Lucene index"
        if index:
            needed += f' beside {index}'
        raise MissingResourceError(f'{needed}: {_how(entry)}')
    prebuilt = entry.values.get('indexes', {}).get(source.name)
    if prebuilt is not None:
        return str(prebuilt)
    # BM25 needs nothing but the collection.
    if entry.values['variant'] == 'bm25' and 'resource' in source.values:
        return _own_index(source, on_build)
    raise MissingResourceError(
        f"there is no Lucene index of '{source.name}' for '{entry.name}': {_how(entry)}"
    )


def _collection(index: str | None) -> catalog.Entry | None:
    """The collection that an index or a collection of the catalog means; None for another name."""
    if index is None:
        return None
    known = catalog.find('indexes', index)
    name = index if known is None else str(known.values['collection'])
    return catalog.find('collections', name)


def _how(entry: catalog.Entry) -> str:
    """How to get an index for a technique."""
    built = f'build one of variant {entry.values["variant"]} with the command `index lucene`'
    if 'needs' in entry.values:
        built += f' from {entry.values["needs"]}'
    return f'{built}, and name it as {entry.name}@FOLDER'


def _own_index(source: catalog.Entry, on_build: OnBuild) -> Path:
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.lucene.jvm import lucene_major
    from pyserini_repbert.names.corpora import open_corpus

    # Lucene 9 cannot read what 10 writes, and installations of Pyserini 1.6 and 2.x may share a
    # cache.
    folder = cache_folder() / 'indexes' / f'{source.name}.lucene{lucene_major()}'
    if not folder.is_dir():
        on_build(folder)
        build_lucene_index(open_corpus(source.name), folder)
    return folder

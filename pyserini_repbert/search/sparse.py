"""Sparse first stages by name: a technique of the catalog on a collection, or on any Lucene index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert import catalog
from pyserini_repbert.errors import MismatchError, MissingResourceError

if TYPE_CHECKING:
    from pyserini_repbert.pyserini_bridge.impact import EpicImpactSearcher
    from pyserini_repbert.pyserini_bridge.lucene import LuceneSparseSearcher

_BUILT_HERE = 'bm25'  # the variant that needs nothing but the collection


def open_sparse(
    spec: str,
    collection: str | None = None,
    on_build: Callable[[Path], object] | None = None,
    download: bool = False,
    device: str = 'cpu',
) -> LuceneSparseSearcher | EpicImpactSearcher:
    """A sparse searcher.

    Parameters
    ----------
    spec : 'TECHNIQUE', 'TECHNIQUE@INDEX', or a Lucene index FOLDER alone, which is then searched as its own record says
        that it was built (without one: BM25); TECHNIQUE is one of the catalog's `sparse`, INDEX a folder or a prebuilt
        index of Pyserini
    collection : the catalog collection that a technique without index is for; the Lucene index of a collection that
        ships with this package is built on first use
    on_build : called with the folder before an index is built
    download : fetch a prebuilt index that is not here, gigabytes
    device : where the query encoder of an index of EPIC's impacts computes

    Raises
    ------
    UnknownNameError
        for a technique or an index that nobody knows, with the nearest names
    MissingResourceError
        for an index that has to be downloaded or built by the user first, with how
    MismatchError
        for a technique that weighs words on an index of EPIC's impacts
    """
    from pyserini_repbert.pyserini_bridge.lucene import LuceneSparseSearcher, index_folder
    from pyserini_repbert.pyserini_bridge.sparse_settings import EPIC_IMPACT, SparseSettings, built_variant

    if catalog.find('sparse', spec.partition('@')[0]) is None and Path(spec).exists():
        folder = index_folder(spec)
        if built_variant(folder) == EPIC_IMPACT:
            from pyserini_repbert.pyserini_bridge.impact import EpicImpactSearcher

            return EpicImpactSearcher(folder, device=device)
        return LuceneSparseSearcher(folder)
    technique, _, index = spec.partition('@')
    entry = catalog.get('sparse', technique)
    folder = index_folder(index or _collection_index(entry, collection, on_build), download)
    if built_variant(folder) == EPIC_IMPACT:
        raise MismatchError(
            f"index {folder} holds EPIC's impacts, which '{technique}' cannot score: name the folder alone, {folder}"
        )
    return LuceneSparseSearcher(folder, SparseSettings(**entry.values['settings']))


def _collection_index(
    entry: catalog.Entry, collection: str | None, on_build: Callable[[Path], object] | None
) -> str | Path:
    """The index of a technique for a collection: prebuilt by Pyserini, or built from a collection that ships."""
    if collection is None:
        raise MissingResourceError(
            f"'{entry.name}' needs a Lucene index here: name one as {entry.name}@FOLDER "
            f'(python -m pyserini_repbert.index lucene --variant {entry.values["variant"]} builds it)'
        )
    prebuilt = entry.values.get('indexes', {}).get(collection)
    if prebuilt is not None:
        return str(prebuilt)
    source = catalog.get('collections', collection)
    if entry.values['variant'] == _BUILT_HERE and 'resource' in source.values:
        return _own_index(source, on_build)
    needs = entry.values.get('needs')
    raise MissingResourceError(
        f"there is no Lucene index of '{collection}' for '{entry.name}': build one with python -m "
        f'pyserini_repbert.index lucene --variant {entry.values["variant"]}{f" from {needs}" if needs else ""}, '
        f'and name it as {entry.name}@FOLDER'
    )


def _own_index(source: catalog.Entry, on_build: Callable[[Path], object] | None) -> Path:
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.passages import open_corpus
    from pyserini_repbert.pyserini_bridge.lucene_calls import lucene_major

    # Lucene 9 cannot read what 10 writes: installations with one Pyserini and the other may share a cache
    folder = catalog.cache_folder() / 'indexes' / f'{source.name}.lucene{lucene_major()}'
    if not folder.is_dir():
        if on_build is not None:
            on_build(folder)
        build_lucene_index(open_corpus(catalog.resource(source)), folder)
    return folder

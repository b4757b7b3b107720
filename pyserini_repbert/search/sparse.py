"""Sparse first stages by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import default_settings
from pyserini_repbert.names.rankers import arguments_of, names_class, ranker_class
from pyserini_repbert.names.sparse import find_sparse
from pyserini_repbert.ranking import Ranker


def open_sparse(
    spec: str,
    index: str | None = None,
    on_build: Callable[[Path], object] | None = None,
    download: bool = False,
    device: str = 'cpu',
    k1: float | None = None,
    b: float | None = None,
) -> Ranker:
    """Open a sparse searcher; the first four parameters, and the errors, are those of `names.sparse.find_sparse`.

    'MODULE:CLASS' opens a first stage of the user's own; 'MODULE:CLASS@INDEX' gives it the keyword argument `index`.

    Parameters
    ----------
    device : where queries are encoded for an index of EPIC's impacts
    k1, b : of BM25, instead of those of the technique or of the index's own record

    Raises InputError where k1 or b is given for anything but BM25.
    """
    changes = [name for name, value in (('k1', k1), ('b', b)) if value is not None]
    name, at, place = spec.partition('@')
    if names_class(name) and not changes:
        kind = ranker_class(name, True)
        ranker = kind(**arguments_of(kind, name, {'index': place} if at else {}, {'device': device}))
        return ranker.with_settings(name=name)
    location = find_sparse(spec, index, on_build, download)
    if changes and (location.of_impacts or (location.settings is not None and location.settings.model != 'bm25')):
        raise InputError(f"'{spec}' has no {' and '.join(changes)}: they are BM25's", parameters=tuple(changes))
    if location.of_impacts:
        from pyserini_repbert.search.impact import EpicImpactSearcher

        return EpicImpactSearcher(location.folder, device=device)
    settings = location.settings
    if changes:
        known = settings or default_settings(location.folder)
        settings = replace(known, k1=known.k1 if k1 is None else k1, b=known.b if b is None else b)
    return LuceneSparseSearcher(location.folder, settings)

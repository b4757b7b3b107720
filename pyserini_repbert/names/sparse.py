"""A sparse first stage by its name: a technique and its index, a Lucene folder, or MODULE:CLASS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import EPIC_IMPACT, built_variant, default_settings
from pyserini_repbert.names.rankers import arguments_of, find_sparse, names_class, ranker_class
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.systems.epic.searcher import EpicImpactSearcher


def open_sparse(
    spec: str,
    index: str | None = None,
    on_build: Callable[[Path], object] = str,
    download: bool = False,
    device: str = 'cpu',
    k1: float | None = None,
    b: float | None = None,
) -> Ranker:
    """Open a sparse searcher; the first four parameters, and the errors, are those of
    `names.rankers.find_sparse`.

    'MODULE:CLASS' opens a first stage of the user's own; 'MODULE:CLASS@INDEX' gives it the keyword
    argument `index`.

    `device` encodes the queries of an index of EPIC's impacts. `k1` and `b` are BM25's, instead of
    those of the technique or of the index's own record.
    """
    changes: dict[str, Any] = {
        name: value for name, value in (('k1', k1), ('b', b)) if value is not None
    }
    name, at, place = spec.partition('@')
    if names_class(name) and not changes:
        kind = ranker_class(name, True)
        ranker = kind(
            **arguments_of(kind, name, {'index': place} if at else {}, {'device': device})
        )
        return ranker.with_settings(name=name)
    folder, settings = find_sparse(spec, index, on_build, download)
    of_impacts = built_variant(folder) == EPIC_IMPACT
    if changes and (of_impacts or (settings is not None and settings.model != 'bm25')):
        raise InputError(
            f"'{spec}' has no {' and '.join(changes)}: they are BM25's", parameters=tuple(changes)
        )
    if of_impacts:
        return EpicImpactSearcher(folder, device=device)
    if changes:
        settings = replace(settings or default_settings(folder), **changes)
    return LuceneSparseSearcher(folder, settings)

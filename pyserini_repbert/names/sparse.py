"""A sparse first stage by its name: a technique and its index, a Lucene folder, or MODULE:CLASS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import (
    EPIC_IMPACT,
    built_variant,
    default_settings,
    recorded_language,
)
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
    language: str | None = None,
) -> Ranker:
    """Open a sparse searcher.

    'MODULE:CLASS' opens a first stage of the user's own; 'MODULE:CLASS@INDEX' gives it the keyword
    argument `index`.

    Parameters
    ----------
    spec, index, on_build, download : as of `names.rankers.find_sparse`
    device : encodes the queries of an index of EPIC's impacts
    k1, b : of BM25, instead of those of the technique or of the index's own record
    language : of the analyzer of an index without a record of its own

    Raises the errors of `find_sparse`, and InputError for BM25's constants with another technique.
    """
    name, at, named_index = spec.partition('@')
    constants = _given(k1=k1, b=b)
    if names_class(name) and not constants:
        options = {'index': named_index} if at else {}
        return _own_ranker(name, options, device)
    folder, settings = find_sparse(spec, index, on_build, download)
    has_impacts = built_variant(folder) == EPIC_IMPACT
    is_bm25 = not has_impacts and (settings is None or settings.model == 'bm25')
    if constants and not is_bm25:
        raise InputError(
            f"'{spec}' has no {' and '.join(constants)}: they are BM25's",
            parameters=tuple(constants),
        )
    if has_impacts:
        return EpicImpactSearcher(folder, device=device)
    usual = default_settings(folder)
    own_language = recorded_language(folder) or language or usual.language
    settings = replace(settings or usual, language=own_language, **constants)
    return LuceneSparseSearcher(folder, settings)


def _given(**values: float | None) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _own_ranker(name: str, options: Mapping[str, str], device: str) -> Ranker:
    """A first stage of the user's own, by MODULE:CLASS, with these keyword arguments."""
    kind = ranker_class(name, True)
    ranker = kind(**arguments_of(kind, name, options, {'device': device}))
    return ranker.with_settings(name=name)

"""A sparse first stage by its name: a technique and its index, a Lucene folder, or MODULE:CLASS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.lucene.impacts import ImpactQueryEncoder, ImpactSearcher
from pyserini_repbert.lucene.index_record import EPIC_IMPACT, built_variant, recorded_language
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher, index_folder
from pyserini_repbert.lucene.sparse_settings import default_settings
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.names.rankers import (
    arguments_of,
    find_sparse,
    named_object,
    names_class,
    ranker_class,
)
from pyserini_repbert.ranking import Ranker


def open_sparse(
    spec: str,
    index: str | None = None,
    on_build: OnBuild = build_silently,
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
    spec, index, on_build, download : as in `names.rankers.find_sparse`
    device : encodes the queries of an index of EPIC's impacts
    k1, b : of BM25, instead of the technique's or the index's
    language : of the analyzer of an index that does not record its language

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
        # BM25 needs no PyTorch.
        from pyserini_repbert.systems.impact_searcher import EpicImpactSearcher

        return EpicImpactSearcher(folder, device=device)
    usual = default_settings(folder)
    own_language = recorded_language(folder) or language or usual.language
    settings = replace(settings or usual, language=own_language, **constants)
    return LuceneSparseSearcher(folder, settings)


def open_impacts(index: str, encoder: str) -> ImpactSearcher:
    """Open a Lucene index of impacts that another program built.

    Parameters
    ----------
    index : its folder
    encoder : of queries: MODULE:CLASS, or MODULE:CLASS@MODEL, whose class is called with MODEL; it
        has Pyserini's `encode(query) -> {term: weight}`

    Raises InputError for an encoder that cannot be opened, MismatchError for an index of EPIC's
    impacts, which names its encoder.
    """
    folder = index_folder(index)
    if built_variant(folder) == EPIC_IMPACT:
        raise MismatchError(
            f"index {folder} holds EPIC's impacts and names its encoder: leave '{encoder}' out",
            parameters=('encoder',),
        )
    return ImpactSearcher(folder, _impact_encoder(encoder))


def names_impact_encoder(name: str) -> bool:
    """Whether a name has the form MODULE:CLASS or MODULE:CLASS@MODEL."""
    class_name, _, _ = name.partition('@')
    return names_class(class_name)


def check_impact_encoder(name: str) -> None:
    """Raises InputError for a name that does not have the form of an encoder of impacts."""
    if not names_impact_encoder(name):
        raise InputError(
            f"'{name}' is not an encoder of impacts: give MODULE:CLASS or MODULE:CLASS@MODEL, as "
            'pyserini.encode:UniCoilQueryEncoder@castorini/unicoil-msmarco-passage',
            parameters=('encoder',),
        )


def _impact_encoder(name: str) -> ImpactQueryEncoder:
    check_impact_encoder(name)
    class_name, _, model = name.partition('@')
    arguments = [model] if model else []
    try:
        encoder = named_object(class_name)(*arguments)
    except (TypeError, OSError, ValueError) as error:
        reason = ' '.join(str(error).split())
        raise InputError(
            f"encoder '{name}' cannot be opened: {reason}", parameters=('encoder',)
        ) from error
    if not callable(getattr(encoder, 'encode', None)):
        raise InputError(
            f"'{name}' has no method 'encode', which gives a query's {{term: weight}}",
            parameters=('encoder',),
        )
    opened: ImpactQueryEncoder = encoder
    return opened


def _given(**values: float | None) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _own_ranker(name: str, options: Mapping[str, str], device: str) -> Ranker:
    """A first stage of the user's own, by MODULE:CLASS, with these keyword arguments."""
    kind = ranker_class(name, True)
    ranker = kind(**arguments_of(kind, name, options, {'device': device}))
    return ranker.with_settings(name=name)

"""A collection as the first stage of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.reading import Generation, open_generation
from pyserini_repbert.collection.searching import (
    CollectionRanking,
    CollectionSearcher,
    SearchSettings,
    default_fusion,
    open_collection_encoder,
    rankings_of,
)
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.data.documents import read_docids
from pyserini_repbert.encode.term_weights import TermWeightsEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.search.adapted_folder import read_query_map
from pyserini_repbert.search.dense import QueryEncoder


def apply_collection(spec: PipelineSpec) -> PipelineSpec:
    """The spec with the rankings of the collection that it names, and the way they are fused.

    A spec of another index is returned as it is. Unless the spec names another fusion, the rankings
    of a collection are interpolated after min-max, the dense one with a share of 0.6. A collection
    beside sparse rankings counts as one ranking.

    Raises InputError for settings of collections without a collection, and for those that a
    collection does not have.
    """
    if spec.index is None or not is_collection(Path(spec.index)):
        _refuse_settings_of_collections(spec)
        return spec
    generation = open_generation(Path(spec.index))
    with_rankings = rankings_of(generation.settings, spec.rankings)
    generation.close()
    names = tuple(str(ranking) for ranking in with_rankings)
    if spec.ann and CollectionRanking.DENSE not in with_rankings:
        raise InputError(
            f'an approximate index is of the dense ranking, and {" ".join(names)} was asked for: '
            'leave one out',
            parameters=('ann', 'rankings'),
        )
    spec = spec.model_copy(update={'rankings': names})
    if len(with_rankings) > 1 and not spec.sparse:
        spec = complete_fusion(spec, with_rankings)
    return spec


def _refuse_settings_of_collections(spec: PipelineSpec) -> None:
    """Raises InputError where a spec of another index has a setting of collections."""
    given = f"'{spec.index}' is none"
    if not spec.index:
        given = 'no index was named'
    for name in ('rankings', 'aggregate', 'filter', 'only_ids', 'not_ids'):
        if name in spec.model_fields_set and getattr(spec, name) not in (None, (), 'max'):
            raise InputError(
                f'{name} is for a collection, and {given}: leave it out', parameters=(name,)
            )


def complete_fusion(spec: PipelineSpec, rankings: Sequence[str]) -> PipelineSpec:
    """The spec with the default fusion of a collection's two rankings, where it names none."""
    usual = default_fusion(rankings)
    changes: dict[str, Any] = {}
    if 'fusion' not in spec.model_fields_set:
        changes['fusion'] = str(usual.method)
    fusion = changes.get('fusion', spec.fusion)
    if fusion == usual.method and not spec.weights and spec.alpha is None:
        changes['alpha'] = usual.weights[0]
    return spec.model_copy(update=changes)


def _filter(spec: PipelineSpec) -> DocumentFilter:
    """The documents that count. Raises InputError for a file that cannot be read."""
    only_ids = None
    if spec.only_ids is not None:
        only_ids = frozenset(read_docids(spec.only_ids))
    not_ids: frozenset[str] = frozenset()
    if spec.not_ids is not None:
        not_ids = frozenset(read_docids(spec.not_ids))
    return DocumentFilter(spec.filter, only_ids, not_ids)


def _query_encoder(
    spec: PipelineSpec, generation: Generation, device: str, before: CollectionSearcher | None
) -> QueryEncoder:
    """The dense encoder of queries: that of an earlier generation, if it is the same."""
    settings = generation.settings
    if before is not None and before.generation.settings.model_key() == settings.model_key():
        return before.dense.query_encoder
    return open_collection_encoder(
        generation, spec.encoder, device, spec.precision, spec.max_length
    )


def _sparse_encoder_before(
    generation: Generation, before: CollectionSearcher | None
) -> TermWeightsEncoder | None:
    """The learned sparse model of an earlier generation, if it is the same; None if it is not."""
    if before is None or before.generation.settings.sparse_key != generation.settings.sparse_key:
        return None
    return before.sparse_encoder


def open_collection_searcher(
    spec: PipelineSpec, machine: Machine, before: CollectionSearcher | None = None
) -> CollectionSearcher:
    """The search of the collection that a completed spec names.

    Parameters
    ----------
    spec, machine : what is searched, and where
    before : a search of an earlier generation, opened for the same spec; its encoder and its shards
        are shared where the new generation has them, too

    Raises InputError for a Ray cluster: a collection is searched on one machine.
    """
    if machine.ray is not None:
        raise InputError(
            f"'{spec.index}' is a collection, which is searched on one machine",
            parameters=('ray',),
        )
    device = machine.devices[0]
    shards: dict[str, PassageShard] = {}
    if before is not None:
        shards = {live.shard.name: live.shard for live in before.generation.shards}
    generation = open_generation(Path(str(spec.index)), shards)
    try:
        encoder = _query_encoder(spec, generation, device, before)
        sparse_encoder = _sparse_encoder_before(generation, before)
        fusion = None
        if len(spec.rankings) > 1 and not spec.sparse:
            fusion = spec.fusion_settings
        query_map = None
        if spec.adapted:
            query_map = read_query_map(encoder, spec.adapted, generation.settings.dimension)
        settings = SearchSettings(
            rankings=spec.rankings,
            aggregation=spec.aggregate,
            fusion=fusion,
            k1=spec.k1,
            b=spec.b,
            query_map=query_map,
            ann=spec.ann,
        )
        searcher = CollectionSearcher(generation, encoder, settings, device, sparse_encoder)
        searcher = searcher.within(_filter(spec))
    except BaseException:
        generation.close()
        raise
    return searcher

"""A search with what `adapt` learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.adaptation import adaptation_in_use
from pyserini_repbert.collection.reading import open_generation
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.names.rankers import refuse_code
from pyserini_repbert.pipeline.spec import PipelineSpec, parse_stage
from pyserini_repbert.search.adapted_folder import (
    ADAPTED,
    AdaptedSearch,
    learned_fusion,
    read_adapted,
    read_query_map,
)

# In place of a folder: a collection without what it learned.
NO_ADAPTATION = 'none'
_FUSION_FIELDS = ('fusion', 'weights', 'normalize', 'depth', 'alpha', 'rrf_k', 'sparse_first')
# A user who names one of these does not ask for what a collection learned.
_OF_USERS = (*_FUSION_FIELDS, 'rankings', 'aggregate', 'sparse', 'encoder', 'prf')


def apply_adaptation(spec: PipelineSpec, allowed_classes: Collection[str] = ()) -> PipelineSpec:
    """The spec with what its `adapted` folder decides; the same spec if it names no such folder.

    A collection has one of its own where people let it learn from their judgments, and use what it
    learned; a spec that names 'none', or its own rankings or fusion, is left as it is.

    Index, encoder, sparse techniques and stages that the spec names are used instead of the
    folder's, because they may be elsewhere by now.

    Parameters
    ----------
    spec : names the folder
    allowed_classes : classes, as MODULE:CLASS, that the folder may name, because the operator of a
        service names them, too

    Raises
    ------
    InputError
        If the spec says itself how rankings are fused, or if the folder names a class that neither
        the spec nor `allowed_classes` names: whoever wrote the file would run it.
    MismatchError
        If it has other sparse techniques.
    """
    if spec.adapted == NO_ADAPTATION:
        return spec.model_copy(update={'adapted': None})
    if spec.adapted is None:
        spec = _with_own_adaptation(spec)
    if spec.adapted is None:
        return spec
    adapted = read_adapted(spec.adapted)
    _refuse_code(spec, adapted, allowed_classes)
    fusion = _fields_of(learned_fusion(adapted))
    _check_fusion(spec, fusion)
    _check_techniques(spec, adapted)
    return spec.model_copy(
        update={
            **fusion,
            'index': spec.index or adapted.index,
            'encoder': spec.encoder or adapted.encoder,
            'sparse': spec.sparse or adapted.sparse,
            'stages': spec.stages or tuple(parse_stage(stage) for stage in adapted.stages),
        }
    )


def _with_own_adaptation(spec: PipelineSpec) -> PipelineSpec:
    """The spec of a collection with what the collection learned, if that is in use."""
    if spec.index is None or not is_collection(Path(spec.index)):
        return spec
    # The method that is the default elsewhere, too, is a choice where it is named.
    if 'fusion' in spec.model_fields_set:
        return spec
    for name in _OF_USERS:
        if getattr(spec, name) != PipelineSpec.model_fields[name].default:
            return spec
    folder = Path(spec.index)
    generation = open_generation(folder)
    used = adaptation_in_use(folder, generation.settings)
    generation.close()
    return spec if used is None else spec.model_copy(update={'adapted': str(used)})


def _refuse_code(
    spec: PipelineSpec, adapted: AdaptedSearch, allowed_classes: Collection[str]
) -> None:
    """Raise InputError for a class that would be run because the folder alone names it."""
    names: dict[str, Sequence[str]] = {}
    if not spec.encoder:
        names['encoder'] = [adapted.encoder]
    if not spec.sparse:
        names['sparse'] = adapted.sparse
    if not spec.stages:
        names['rerank'] = adapted.stages
    for parameter, stored in names.items():
        for name in stored:
            if name.partition('@')[0] not in allowed_classes:
                refuse_code(name, Path(str(spec.adapted)) / ADAPTED, parameter)


def _fields_of(fusion: FusionSettings | None) -> dict[str, Any]:
    """The fields of a spec that fuses by learned weights; none without them."""
    if fusion is None:
        return {}
    return {
        'fusion': str(fusion.method),
        'weights': fusion.weights,
        'normalize': str(fusion.normalize),
        'depth': fusion.depth,
    }


def _check_fusion(spec: PipelineSpec, fusion: Mapping[str, Any]) -> None:
    """Raise InputError if the spec fuses otherwise."""
    for name in _FUSION_FIELDS:
        default = PipelineSpec.model_fields[name].default
        if getattr(spec, name) not in (default, fusion.get(name)):
            raise InputError(
                f'{spec.adapted} decides how rankings are fused: leave it out', parameters=(name,)
            )


def _check_techniques(spec: PipelineSpec, adapted: AdaptedSearch) -> None:
    """Raise MismatchError if the spec has other sparse techniques than the folder."""
    given = _techniques(spec.sparse or adapted.sparse)
    expected = _techniques(adapted.sparse)
    if given != expected:
        raise MismatchError(
            f'sparse techniques {given} were given, but {spec.adapted} learnt to fuse '
            f'{expected}: use these'
        )


def _techniques(sparse: Sequence[str]) -> str:
    """The names without their indexes, as an error shows them."""
    return ' '.join(name.partition('@')[0] for name in sparse) or 'none'


def apply_query_map(searcher: RepBertSearcher, folder: str) -> RepBertSearcher:
    """The searcher with the folder's query map. Raises the errors of `read_query_map`."""
    query_map = read_query_map(searcher.query_encoder, folder, searcher.dimension)
    return searcher.with_settings(query_map=query_map)

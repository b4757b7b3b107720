"""`resolve`: turn a user's request into what is run, once.

Who wins: what a user says; then the folder of `adapt` that the user names, or what the collection
learned or was set to and uses; then the index's own way. Rankings and their fusion are one choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.kind import Index, SearchOptions, kind_of, refuse_options
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.rankers import names_class, refuse_code
from pyserini_repbert.pipeline.spec import PipelineSpec, parse_stage
from pyserini_repbert.search.adapted_folder import AdaptedSearch, learned_fusion, read_adapted
from pyserini_repbert.search.adapted_form import ADAPTED

# Instead of a folder: a collection without what it learned.
NO_ADAPTATION = 'none'
_FUSION_FIELDS = ('fusion', 'weights', 'normalize', 'depth', 'alpha', 'rrf_k', 'sparse_first')
# A user who names one of these does not ask for what a collection learned.
_OF_USERS = (*_FUSION_FIELDS, 'rankings', 'aggregate', 'sparse', 'encoder', 'prf')


@dataclass(frozen=True)
class ResolvedSearch:
    """What is run, and the open index that is searched.

    Attributes
    ----------
    asked : what the user said
    spec : the same with all that was decided: index, encoder, rankings, fusion, stages
    index : that `spec.index` names, open until `close`; None if a run is reranked, or only
        sparse rankings are searched
    """

    asked: PipelineSpec
    spec: PipelineSpec
    index: Index | None = None

    @property
    def searches_words(self) -> bool:
        """Whether a ranking is BM25's, or another one that `sparse` names."""
        return bool(self.spec.sparse) or (self.index is not None and self.index.searches_words)

    @property
    def searches_vectors(self) -> bool:
        """Whether the first ranking of the index is of vectors."""
        return self.index is not None and self.index.searches_vectors

    @property
    def needs_java(self) -> bool:
        """Whether Lucene searches a ranking."""
        if self.index is not None and self.index.needs_java:
            return True
        return not all(names_class(name.partition('@')[0]) for name in self.spec.sparse)

    def with_depth(self, depth: int) -> Self:
        """The same search, with rankings of this depth fused."""
        return replace(self, spec=self.spec.model_copy(update={'depth': depth}))

    def without_stages(self) -> Self:
        """The same search without rerankers."""
        return replace(self, spec=self.spec.model_copy(update={'stages': ()}))

    def close(self) -> None:
        """Release the index."""
        if self.index is not None:
            self.index.close()


def resolve(
    spec: PipelineSpec, machine: Machine | None = None, allowed_classes: Collection[str] = ()
) -> ResolvedSearch:
    """Decide what to run for a spec, and open the index that it names.

    Parameters
    ----------
    spec : what a user says
    machine : where it will run
    allowed_classes : classes, as MODULE:CLASS, that a folder of `adapt` may name, because the
        operator of a service names them, too

    Raises
    ------
    InputError
        If the spec or the machine has settings that the index does not take; if the spec says how
        rankings are fused where a folder of `adapt` does; or if that folder names a class that
        neither the spec nor `allowed_classes` names: the author of the file would run it.
    MismatchError
        If the folder of `adapt` has other sparse techniques.
    """
    asked = spec
    machine = machine or Machine()
    uses_learned = spec.adapted is None and not _users_choices(spec)
    if spec.adapted == NO_ADAPTATION:
        spec = spec.model_copy(update={'adapted': None})
    if spec.adapted is not None:
        spec = _with_adaptation(spec, spec.adapted, allowed_classes)
    if spec.index is None:
        if spec.encoder is not None:
            raise InputError(
                f"encoder '{spec.encoder}' was named, and no index: name the one that it searches",
                parameters=('index',),
            )
        what_is_searched = 'no index was named'
        refuse_options(SearchOptions.of(spec).given() - {'max_length'}, what_is_searched)
        return ResolvedSearch(asked, spec)
    kind = kind_of(spec.index)
    uses_settings = asked.adapted is None and not spec.sparse
    options = SearchOptions.of(spec, uses_learned=uses_learned, uses_settings=uses_settings)
    kind.check(spec.index, options, machine)
    index = kind.open(spec.index, options)
    try:
        if index.adapted is not None and spec.adapted is None:
            spec = _with_adaptation(spec, index.adapted, allowed_classes)
        spec = _with_own_settings(spec, index)
        spec = _with_rankings(spec, index)
    except BaseException:
        index.close()
        raise
    return ResolvedSearch(asked, spec, index)


def _users_choices(spec: PipelineSpec) -> list[str]:
    """The names of the fields with which a user chooses another search than the learned one."""
    chosen = [
        name for name in _OF_USERS if getattr(spec, name) != PipelineSpec.model_fields[name].default
    ]
    # If the default method is named, that is also a choice.
    if 'fusion' in spec.model_fields_set:
        chosen.append('fusion')
    return chosen


def _with_own_settings(spec: PipelineSpec, index: Index) -> PipelineSpec:
    """The spec, completed with the collection's settings."""
    if not index.options.uses_settings:
        return spec
    changes: dict[str, Any] = {}
    if not spec.stages:
        changes['stages'] = tuple(parse_stage(stage) for stage in index.stages)
    if index.searches_words:
        changes |= {'k1': index.options.k1, 'b': index.options.b}
    return spec.model_copy(update=changes)


def _with_rankings(spec: PipelineSpec, index: Index) -> PipelineSpec:
    """The spec with the rankings of its index that are searched, and the way they are fused.

    An index beside sparse rankings counts as one ranking.
    """
    if 'rankings' not in index.kind.takes:
        return spec
    spec = spec.model_copy(update={'rankings': index.rankings})
    if len(index.rankings) > 1 and not spec.sparse:
        spec = with_usual_fusion(spec, index.fusion)
    return spec


def with_usual_fusion(spec: PipelineSpec, usual: FusionSettings) -> PipelineSpec:
    """The spec, with an index's usual fusion of its two rankings if it names none."""
    changes: dict[str, Any] = {}
    if 'fusion' not in spec.model_fields_set:
        changes['fusion'] = str(usual.method)
    fusion = changes.get('fusion', spec.fusion)
    is_interpolation = usual.method is FusionMethod.INTERPOLATION and fusion == usual.method
    if is_interpolation and not spec.weights and spec.alpha is None:
        if len(usual.weights) == 2:
            changes['alpha'] = usual.weights[0]
        else:
            changes['weights'] = usual.weights
    if is_interpolation and spec.normalize is None:
        changes['normalize'] = str(usual.normalize)
    return spec.model_copy(update=changes)


def _with_adaptation(
    spec: PipelineSpec, folder: str, allowed_classes: Collection[str]
) -> PipelineSpec:
    """The spec with what a folder of `adapt` decides.

    Index, encoder, sparse techniques and stages that the spec names are used instead of the
    folder's, because they may be elsewhere by now. Raises the errors of `resolve`.
    """
    adapted = read_adapted(folder)
    _refuse_code(spec, folder, adapted, allowed_classes)
    fusion = _fields_of(adapted)
    _check_fusion(spec, folder, fusion)
    _check_techniques(spec, folder, adapted)
    aggregate = spec.aggregate
    if aggregate == PipelineSpec.model_fields['aggregate'].default:
        aggregate = adapted.aggregate
    return spec.model_copy(
        update={
            **fusion,
            'adapted': folder,
            'index': spec.index or adapted.index,
            'encoder': spec.encoder or adapted.encoder,
            'rankings': spec.rankings or adapted.rankings,
            'aggregate': aggregate,
            'k1': adapted.k1 if spec.k1 is None else spec.k1,
            'b': adapted.b if spec.b is None else spec.b,
            'sparse': spec.sparse or adapted.sparse,
            'stages': spec.stages or tuple(parse_stage(stage) for stage in adapted.stages),
        }
    )


def _refuse_code(
    spec: PipelineSpec, folder: str, adapted: AdaptedSearch, allowed_classes: Collection[str]
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
                refuse_code(name, Path(folder) / ADAPTED, parameter)


def _fields_of(adapted: AdaptedSearch) -> dict[str, Any]:
    """The fields of a spec that fuses as a folder of `adapt` does; none for a single ranking."""
    fusion = learned_fusion(adapted)
    if fusion is None:
        return {}
    fields: dict[str, Any] = {'fusion': str(fusion.method), 'depth': fusion.depth}
    if fusion.method is FusionMethod.INTERPOLATION:
        fields |= {'weights': fusion.weights, 'normalize': str(fusion.normalize)}
    if fusion.method is FusionMethod.RRF:
        fields['rrf_k'] = fusion.rrf_k
    if adapted.sparse_first:
        fields['sparse_first'] = True
    return fields


def _check_fusion(spec: PipelineSpec, folder: str, fusion: Mapping[str, Any]) -> None:
    """Raise InputError if the spec fuses otherwise."""
    for name in _FUSION_FIELDS:
        default = PipelineSpec.model_fields[name].default
        if getattr(spec, name) not in (default, fusion.get(name)):
            raise InputError(
                f'{folder} decides how rankings are fused: leave it out', parameters=(name,)
            )


def _check_techniques(spec: PipelineSpec, folder: str, adapted: AdaptedSearch) -> None:
    """Raise MismatchError if the spec has other sparse techniques than the folder."""
    given = _techniques(spec.sparse or adapted.sparse)
    expected = _techniques(adapted.sparse)
    if given != expected:
        raise MismatchError(
            f'sparse techniques {given} were given, but {folder} learned to fuse {expected}: use '
            'these'
        )


def _techniques(sparse: Sequence[str]) -> str:
    """The names without their indexes, as an error shows them."""
    return ' '.join(name.partition('@')[0] for name in sparse) or 'none'

"""How a collection is searched by default: what a user set with `index settings` goes before what
it learned.

It is stored as a learning is: in a folder of `adapt`, which is in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.adaptation import (
    ADAPTATIONS,
    JUDGMENTS,
    MOST_RERANKED,
    can_be_stored,
    fits_models,
    judgments_of,
    learned_folder,
)
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.collection.judgments import SETTINGS, Learning
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.data.model_judges import TAUGHT_BY
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import combiner
from pyserini_repbert.fusion.methods import RRF_K, FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.pipeline.resolving import NO_ADAPTATION, ResolvedSearch, resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import open_query_map, read_adapted, write_adapted

_FUSION_FIELDS = ('fusion', 'alpha', 'weights', 'normalize', 'rrf_k', 'depth')
# Fields of a spec that are one choice: who names one of them replaces all, and a query map.
CHOICE_FIELDS = ('rankings', 'aggregate', *_FUSION_FIELDS)
OWN_FIELDS = (*CHOICE_FIELDS, 'k1', 'b', 'stages')

# Attributes of `AdaptedSearch`, with their values if nothing was learned or set.
_USUAL_CHOICE: dict[str, Any] = {
    'rankings': (),
    'aggregate': 'max',
    'method': 'interpolation',
    'weights': (),
    'normalize': 'minmax',
    'rrf_k': RRF_K,
    'depth': None,
}
_USUAL_OTHERS: dict[str, Any] = {'k1': None, 'b': None, 'stages': ()}
_USUAL = _USUAL_CHOICE | _USUAL_OTHERS


@dataclass(frozen=True)
class OwnSetting:
    """A setting by which a collection is searched.

    Attributes
    ----------
    name, value : as a person reads them
    source : 'set', 'learned' or 'default'
    """

    name: str
    value: str
    source: str


@dataclass(frozen=True)
class _OwnSearch:
    """How a collection is searched.

    Attributes
    ----------
    values : attributes of `AdaptedSearch`, all of `_USUAL`
    chosen : the names of what a person set
    folder : of the query map; None without one
    learned : the number of the learning that is used; None without one
    encoder_weights : of that learning; '': any models will do
    is_by_sync : whether a sync has set the choice, and nobody has changed it since
    """

    values: Mapping[str, Any]
    chosen: frozenset[str] = frozenset()
    folder: Path | None = None
    learned: int | None = None
    encoder_weights: str = ''
    is_by_sync: bool = False


def set_settings(folder: Path, values: Mapping[str, Any], *, is_by_sync: bool = False) -> None:
    """Search a collection so from now on, unless a user says otherwise.

    Parameters
    ----------
    folder : of the collection
    values : of `OWN_FIELDS`; missing ones do not change
    is_by_sync : whether a sync sets rankings by the documents, not a person

    Raises InputError for a folder that is not a collection, and for settings that it cannot use.
    """
    _check_collection(folder)
    spec = PipelineSpec.of({**values, 'index': str(folder), 'adapted': NO_ADAPTATION})
    _check_values(spec)
    with closing(resolve(spec)) as resolved:
        choice = _choice_of(spec, resolved)
    before = judgments_of(folder).in_use()
    search = _search_of(folder, before)
    if any(name in values for name in CHOICE_FIELDS):
        chosen = _chosen_others(search) | _names_of_choice(values)
        search = _OwnSearch({**search.values, **choice}, chosen, is_by_sync=is_by_sync)
    changed = {name: getattr(spec, name) for name in _USUAL_OTHERS if name in values}
    if 'stages' in changed:
        changed['stages'] = tuple(map(str, changed['stages']))
    search = replace(
        search, values={**search.values, **changed}, chosen=search.chosen | changed.keys()
    )
    _use_search(folder, search, before)


def forget_choice_of_sync(folder: Path) -> bool:
    """Search a collection by all its rankings again, where a sync has set them; returns whether
    one had. What a person has set besides stays.
    """
    before = judgments_of(folder).in_use()
    search = _search_of(folder, before)
    if before is None or not search.is_by_sync:
        return False
    chosen = _chosen_others(search)
    if chosen:
        _use_search(folder, _OwnSearch({**search.values, **_USUAL_CHOICE}, chosen), before)
    else:
        judgments_of(folder).use(before.report.get('before'))
    return True


def are_rankings_of_sync(folder: Path) -> bool:
    """Whether a sync has set the rankings of a collection, and nobody has changed them since."""
    return _search_of(folder, judgments_of(folder).in_use()).is_by_sync


def use_learned(folder: Path, learning: Learning) -> None:
    """Search a collection as it learned, with the other settings that a person set."""
    store = judgments_of(folder)
    before = store.in_use()
    if before is None or not before.is_settings:
        store.use(learning.number)
        return
    search = _search_of(folder, before)
    kept = {name: search.values[name] for name in _chosen_others(search)}
    learned = _search_of(folder, learning)
    learned = replace(learned, values={**learned.values, **kept}, chosen=frozenset(kept))
    _use_search(folder, learned, before)


def _chosen_others(search: _OwnSearch) -> frozenset[str]:
    """The names of what a person set besides rankings and their fusion."""
    return search.chosen & _USUAL_OTHERS.keys()


def undo_settings(folder: Path) -> None:
    """Search a collection as before its last setting.

    Raises InputError for a folder that is not a collection, and if no setting is in use.
    """
    _check_collection(folder)
    store = judgments_of(folder)
    setting = store.in_use()
    if setting is None or not setting.is_settings:
        how = 'by default' if setting is None else 'as it learned'
        raise InputError(f'collection {folder} has no stored settings, it is searched {how}')
    store.use(setting.report.get('before'))


def undo_learned(folder: Path) -> None:
    """Search a collection as before it learned: by default, or as a person had set it before."""
    store = judgments_of(folder)
    in_use = store.in_use()
    by_number: dict[Any, Learning] = {learning.number: learning for learning in store.learnings()}
    while in_use is not None and _learning_of(in_use) is not None:
        in_use = by_number.get(in_use.report.get('before'))
    if store.in_use() is not None:
        store.use(None if in_use is None else in_use.number)


def learning_in_use(folder: Path) -> int | None:
    """The number of the learning as which a collection is searched; None without one."""
    in_use = judgments_of(folder).in_use()
    return None if in_use is None else _learning_of(in_use)


def _learning_of(used: Learning) -> int | None:
    """The number of a learning, or of that over which settings are; None without one."""
    number: int | None = used.report.get('learned') if used.is_settings else used.number
    return number


def teacher_of(adapted: Path) -> str | None:
    """The language model, as a judge, whose grades taught a search, too; None without one.

    Parameters
    ----------
    adapted : the folder of what a collection learned, or of settings over that; of any other
        folder, no teacher is known
    """
    collection = adapted.parent.parent
    if not (collection / JUDGMENTS).is_file():
        return None
    store = judgments_of(collection)
    teachers = {learning.number: learning.report.get(TAUGHT_BY) for learning in store.learned()}
    for learning in store.learnings():
        number = _learning_of(learning)
        if collection / learning.folder == adapted and number is not None:
            return teachers.get(number)
    return None


def bm25_settings(folder: Path) -> dict[str, float | None]:
    """The k1 and b by which BM25 searches a collection; None: the usual ones."""
    values = _search_of(folder, judgments_of(folder).in_use()).values
    return {name: values[name] for name in ('k1', 'b')}


def own_settings(folder: Path) -> list[OwnSetting]:
    """How a collection is searched unless a user says otherwise, and whence.

    Raises InputError for a folder that is not a collection.
    """
    _check_collection(folder)
    search = _search_of(folder, judgments_of(folder).in_use())
    with closing(resolve(PipelineSpec(index=str(folder)))) as resolved:
        assert resolved.index is not None
        usual_ranking = resolved.index.offered.usual
        values = _values_of(resolved.spec, searches_words=resolved.searches_words)
    values['query map'] = 'none' if search.folder is None else 'learned'
    settings = []
    for name, value in values.items():
        source = _source_of(name, search)
        if name == 'rankings' and source == 'default' and usual_ranking not in ('', value):
            # Of a collection with token vectors, other rankings are searched without these.
            source = 'learned'
        settings.append(OwnSetting(name, value, source))
    return settings


def _values_of(spec: PipelineSpec, *, searches_words: bool) -> dict[str, str]:
    """The settings of a search by name, as a person reads them; `searches_words`: by BM25, too."""
    values = {'rankings': ' '.join(spec.rankings), 'aggregate': spec.aggregate}
    if len(spec.rankings) > 1:
        values['fusion'] = _fusion_text(spec)
    if searches_words:
        usual = SparseSettings()
        values['k1'] = f'{usual.k1 if spec.k1 is None else spec.k1:g}'
        values['b'] = f'{usual.b if spec.b is None else spec.b:g}'
    values['rerank'] = ' '.join(map(str, spec.stages)) or 'none'
    return values


def _source_of(name: str, search: _OwnSearch) -> str:
    """Whence a setting is."""
    attribute = 'stages' if name == 'rerank' else name
    if attribute in search.chosen:
        return 'set'
    if search.learned is None:
        return 'default'
    if name == 'fusion':
        return 'learned'
    if name == 'query map':
        return 'default' if search.folder is None else 'learned'
    return 'default' if search.values[attribute] == _USUAL[attribute] else 'learned'


def _fusion_text(spec: PipelineSpec) -> str:
    """How rankings are fused, in a line."""
    fusion = spec.fusion_settings
    text = str(fusion.method)
    if fusion.method is FusionMethod.RRF:
        text += f', k {fusion.rrf_k:g}'
    if fusion.method is FusionMethod.INTERPOLATION:
        weights = ' '.join(f'{weight:g}' for weight in fusion.weights_for(spec.n_rankings))
        text += f', weights {weights}, {fusion.normalize}'
    return text if fusion.depth is None else f'{text}, depth {fusion.depth}'


def _check_collection(folder: Path) -> None:
    """Raises InputError for a folder that is not a collection."""
    kind_of(str(folder)).check_writable(str(folder))


def _check_values(spec: PipelineSpec) -> None:
    """Raises InputError for a reranker that a collection cannot name, and for numbers that BM25
    does not take.
    """
    for stage in spec.stages:
        if not can_be_stored(str(stage)):
            raise InputError(
                f"reranker '{stage}' was given, and a collection can only name one of the catalog, "
                f'as NAME@K with K at most {MOST_RERANKED}: name another one when you search',
                parameters=('rerank',),
            )
    if spec.k1 is not None and spec.k1 < 0:
        raise InputError(f'k1 is {spec.k1}, a number from 0 on was expected', parameters=('k1',))
    if spec.b is not None and not 0 <= spec.b <= 1:
        raise InputError(f'b is {spec.b}, a number from 0 to 1 was expected', parameters=('b',))


def _choice_of(asked: PipelineSpec, resolved: ResolvedSearch) -> dict[str, Any]:
    """The attributes of `AdaptedSearch` for the rankings of a spec, and their fusion.

    Raises InputError for a fusion that they cannot have, and for k1 and b without BM25.
    """
    if asked.bm25_constants and not resolved.searches_words:
        raise InputError(
            'k1 and b are for BM25, which is not among the rankings', parameters=('k1', 'b')
        )
    spec = resolved.spec
    fusion = spec.fusion_settings
    names_fusion = any(name in asked.model_fields_set for name in _FUSION_FIELDS)
    choice = {**_USUAL_CHOICE, 'rankings': asked.rankings, 'aggregate': asked.aggregate}
    if spec.n_rankings < 2:
        if names_fusion:
            raise InputError(
                'a fusion needs two rankings, and one is searched', parameters=('fusion', 'depth')
            )
        return choice
    combiner(spec.n_rankings, fusion)
    if names_fusion:
        choice |= _fusion_values(fusion, spec.n_rankings)
    return choice


def _fusion_values(fusion: FusionSettings, n_rankings: int) -> dict[str, Any]:
    """The attributes of `AdaptedSearch` for a fusion."""
    values: dict[str, Any] = {'method': str(fusion.method), 'depth': fusion.depth}
    if fusion.method is FusionMethod.INTERPOLATION:
        values |= {
            'weights': fusion.weights_for(n_rankings),
            'normalize': str(fusion.normalize),
        }
    if fusion.method is FusionMethod.RRF:
        values['rrf_k'] = fusion.rrf_k
    return values


def _names_of_choice(values: Mapping[str, Any]) -> frozenset[str]:
    """The names of what a person chooses among rankings and their fusion."""
    names = {name for name in ('rankings', 'aggregate') if name in values}
    if any(name in values for name in _FUSION_FIELDS):
        names.add('fusion')
    return frozenset(names)


def _search_of(folder: Path, learning: Learning | None) -> _OwnSearch:
    """How a collection is searched according to what it learned or a user set; None: by default."""
    settings = _settings_of(folder)
    if learning is None or not fits_models(learning, settings):
        return _OwnSearch(_USUAL)
    stored = learned_folder(folder, learning)
    adapted = read_adapted(stored)
    has_map = (
        adapted.query_map is not None and open_query_map(stored, settings.dimension) is not None
    )
    return _OwnSearch(
        values={name: getattr(adapted, name) for name in _USUAL},
        chosen=frozenset(adapted.chosen),
        folder=stored if has_map else None,
        learned=_learning_of(learning),
        encoder_weights=learning.encoder_weights,
        is_by_sync=bool(learning.report.get('by_sync')),
    )


def _settings_of(folder: Path) -> CollectionSettings:
    """The settings of a collection's newest generation."""
    with closing(open_generation(folder)) as generation:
        return generation.settings


def _use_search(folder: Path, search: _OwnSearch, before: Learning | None) -> None:
    """Store a way of searching, and use it; `before` is what is in use."""
    settings = _settings_of(folder)
    query_map = None
    if search.folder is not None:
        query_map = open_query_map(search.folder, settings.dimension)
    report = {
        'kind': SETTINGS,
        'before': None if before is None else before.number,
        'learned': search.learned,
    }
    if search.is_by_sync:
        report['by_sync'] = True
    store = judgments_of(folder)
    number = store.next_learning()
    name = f'{ADAPTATIONS}/{number:06d}'
    (folder / ADAPTATIONS).mkdir(exist_ok=True)
    write_adapted(
        folder / name,
        query_map,
        # One that a kill left before it was stored.
        overwrite=True,
        index=str(folder),
        encoder=settings.encoder,
        encoder_weights=settings.weights_sha256,
        sparse=(),
        estimate={},
        chosen=tuple(sorted(search.chosen)),
        **search.values,
    )
    store.add_learning(
        Learning(
            number=number,
            folder=name,
            learned=datetime.now(UTC).isoformat(timespec='milliseconds'),
            generation=0,
            judgments=0,
            encoder_weights=search.encoder_weights,
            in_use=False,
            report=report,
        )
    )
    store.use(number)

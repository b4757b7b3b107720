"""The rankings that a collection has, and how they are fused unless a user says how."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.collection.settings import CollectionSettings, SparseKind
from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.fusion.methods import FusionMethod, Normalization
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.search.adapted_folder import AdaptedSearch, learned_fusion

# The dense ranking's share in the interpolation of a collection's rankings.
DENSE_SHARE = 0.6


class CollectionRanking(Choice, what='ranking of a collection'):
    """A ranking without a further model; the rankings of further models are
    `Representation.ranking`.

    RESCORED has the best hits of the others, in the order of the scores of a further model that
    rescores.
    """

    DENSE = 'dense'
    BM25 = 'bm25'
    RESCORED = 'rescored'


def check_ranking(name: str) -> str:
    """The name of a ranking that collections may have. Raises InputError for another name."""
    names = [str(CollectionRanking.DENSE), str(CollectionRanking.BM25)]
    names += [kind.ranking for kind in representations()]
    if any(kind.rescores for kind in representations()):
        names.append(str(CollectionRanking.RESCORED))
    if name not in names:
        raise InputError(
            f"ranking of a collection '{name}' is unknown: expected one of {', '.join(names)}"
            f'{missing_extension(f"--rankings {name}")}'
        )
    return str(name)


def _by_strength() -> list[str]:
    """The rankings of collections; of two, the first has the greater share of their fusion."""
    kinds = sorted(representations(), key=lambda kind: not kind.rescores)
    further = [kind.ranking for kind in kinds]
    return [CollectionRanking.DENSE, CollectionRanking.RESCORED, *further, CollectionRanking.BM25]


def first_rankings(settings: CollectionSettings) -> tuple[str, ...]:
    """The rankings of a collection that are usually fused: of vectors, and of words."""
    rankings = [str(CollectionRanking.DENSE)]
    if settings.sparse is SparseKind.BM25:
        rankings.append(str(CollectionRanking.BM25))
    rankings += [kind.ranking for kind in settings.further_models if not kind.rescores]
    return tuple(rankings)


def stored_rankings(settings: CollectionSettings) -> tuple[str, ...]:
    """The rankings of a collection by one model each, in the order of fusion."""
    kind = rescoring_kind(settings)
    if kind is None:
        return first_rankings(settings)
    return (*first_rankings(settings), kind.ranking)


def rescoring_kind(settings: CollectionSettings) -> Representation | None:
    """What scores the best hits of the first rankings; None if nothing does."""
    for kind in settings.further_models:
        if kind.rescores:
            return kind
    return None


def rankings_of(settings: CollectionSettings, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """The rankings of a collection that are searched, in the order of fusion.

    `wanted` names some of them; none: the usual ones. Raises InputError for a ranking that the
    collection does not have, and for one that is named twice.
    """
    is_rescored = rescoring_kind(settings) is not None
    if not wanted:
        return (str(CollectionRanking.RESCORED),) if is_rescored else first_rankings(settings)
    rankings = tuple(check_ranking(name) for name in wanted)
    if len(set(rankings)) < len(rankings):
        raise InputError(f'rankings {" ".join(wanted)}: name each once', parameters=('rankings',))
    available = stored_rankings(settings)
    if is_rescored:
        available += (str(CollectionRanking.RESCORED),)
    for ranking in rankings:
        if ranking not in available:
            raise InputError(_absence(ranking, available), parameters=('rankings',))
    return rankings


def learned_rankings(settings: CollectionSettings, adapted: AdaptedSearch) -> tuple[str, ...]:
    """The rankings that a collection learned to search; none: the usual ones.

    A folder of `adapt` that names none is of the first rankings, and one without a fusion is of the
    dense ranking. If a person has set, for example, only a reranker, the usual rankings are
    searched.
    """
    if adapted.rankings:
        return adapted.rankings
    if learned_fusion(adapted) is not None:
        return first_rankings(settings)
    if adapted.query_map is not None:
        return (str(CollectionRanking.DENSE),)
    return ()


def searched_rankings(settings: CollectionSettings, rankings: Sequence[str]) -> set[str]:
    """The rankings by a single model that are searched if these are asked for."""
    searched = set(rankings)
    if CollectionRanking.RESCORED in searched:
        searched.update(first_rankings(settings))
    return searched


def _absence(ranking: str, available: Sequence[str]) -> str:
    """Why a collection does not have a ranking, and which it has."""
    missing = 'without Lucene'
    for kind in representations():
        if ranking == kind.ranking or (kind.rescores and ranking == CollectionRanking.RESCORED):
            missing = f'without a {kind.what}'
    if len(available) == 1:
        return f'the collection was built {missing}: its ranking is {available[0]}'
    named = ' and '.join((', '.join(available[:-1]), available[-1]))
    return f'the collection was built {missing}: its rankings are {named}'


def default_fusion(rankings: Sequence[str]) -> FusionSettings:
    """How a collection's rankings are fused unless a user says how.

    Two rankings are interpolated. Each score is taken above its ranking's background, as a share of
    the best score, or of the best score by chance (`Normalization.BACKGROUND`). Words do not judge
    documents whose language is not the question's. The ranking that is
    first in `_by_strength` has the weight `DENSE_SHARE`. More than two rankings have equal weights.
    """
    if len(rankings) < 2:
        return FusionSettings()
    settings = FusionSettings(FusionMethod.INTERPOLATION, normalize=Normalization.BACKGROUND)
    if len(rankings) > 2:
        return settings.changed(alpha=[1 / len(rankings)] * len(rankings))
    first, second = (_by_strength().index(ranking) for ranking in rankings)
    leads = first < second
    return settings.changed(alpha=DENSE_SHARE if leads else round(1 - DENSE_SHARE, 6))

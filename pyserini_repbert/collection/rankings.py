"""The rankings that a collection has, and how they are fused unless a user says how."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.collection.settings import CollectionSettings, SparseKind
from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, Normalization
from pyserini_repbert.fusion.settings import FusionSettings

# The dense ranking's share in the interpolation of a collection's rankings.
DENSE_SHARE = 0.6


class CollectionRanking(Choice, what='ranking of a collection'):
    """A ranking that a collection has."""

    DENSE = 'dense'
    BM25 = 'bm25'
    SPARSE = 'sparse'


# The sparse ranking of each kind of collection.
_SPARSE_RANKINGS = {
    SparseKind.BM25: CollectionRanking.BM25,
    SparseKind.LEARNED: CollectionRanking.SPARSE,
}


def rankings_of(
    settings: CollectionSettings, wanted: Sequence[str] = ()
) -> tuple[CollectionRanking, ...]:
    """The rankings of a collection that are searched, in the order of fusion.

    `wanted` names some of them; none: all that it has. Raises InputError for a ranking that the
    collection does not have, and for one that is named twice.
    """
    available = [CollectionRanking.DENSE]
    if settings.sparse in _SPARSE_RANKINGS:
        available.append(_SPARSE_RANKINGS[settings.sparse])
    if not wanted:
        return tuple(available)
    rankings = tuple(CollectionRanking(name) for name in wanted)
    if len(set(rankings)) < len(rankings):
        raise InputError(f'rankings {" ".join(wanted)}: name each once', parameters=('rankings',))
    for ranking in rankings:
        if ranking not in available:
            raise InputError(_absence(ranking, available), parameters=('rankings',))
    return rankings


def _absence(ranking: CollectionRanking, available: Sequence[CollectionRanking]) -> str:
    """Why a collection does not have a ranking, and which it has."""
    missing = 'without Lucene'
    if ranking is CollectionRanking.SPARSE:
        missing = 'without a learned sparse model'
    if len(available) == 1:
        return f'the collection was built {missing}: its ranking is {available[0]}'
    return f'the collection was built {missing}: its rankings are {" and ".join(available)}'


def default_fusion(rankings: Sequence[str]) -> FusionSettings:
    """How a collection's rankings are fused unless a user says how.

    Two are interpolated, each score as a share of its ranking's best, the dense ones with a weight
    of `DENSE_SHARE`.
    """
    if len(rankings) < 2:
        return FusionSettings()
    leads = CollectionRanking(rankings[0]) is CollectionRanking.DENSE
    share = DENSE_SHARE if leads else round(1 - DENSE_SHARE, 6)
    settings = FusionSettings(FusionMethod.INTERPOLATION, normalize=Normalization.MAX)
    return settings.changed(alpha=share)

"""The rankings of a collection that have vectors, and where their approximate indexes are."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.encode.representations import Representation
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate.form import ANN
from pyserini_repbert.extensions.approximate.ranking_vectors import DenseVectors, RankingVectors
from pyserini_repbert.systems.registry import representations


def vectors_of(generation: Generation, ranking: str, passages: PassageVectors) -> RankingVectors:
    """The vectors of a ranking.

    Parameters
    ----------
    generation : open
    ranking : 'dense', or that of a further model that has vectors: 'multi'
    passages : of the generation

    Raises InputError for a ranking without vectors, and for a model that the generation lacks.
    """
    if ranking == CollectionRanking.DENSE:
        return DenseVectors(passages)
    kind = _kind_of(ranking)
    if kind not in generation.settings.further_models:
        raise InputError(
            f'collection {generation.folder} has no {kind.what}: build the index of another '
            'ranking',
            parameters=('ranking',),
        )
    from pyserini_repbert.extensions.approximate.token_vectors import TokenVectors

    return TokenVectors(generation, kind, passages)


def kinds_with_vectors() -> list[Representation]:
    """The further models whose passages have vectors."""
    return [kind for kind in representations() if kind.has_vectors]


def ann_folders(folder: Path) -> list[Path]:
    """The folders in which a collection may have an approximate index, `ann`: the collection's, of
    dense vectors, and one for each further model that has vectors.
    """
    return [folder, *(folder / kind.name for kind in kinds_with_vectors())]


def ann_folder(folder: Path, ranking: str) -> Path:
    """The approximate index of a ranking, in the folder of an index."""
    if ranking == CollectionRanking.DENSE:
        return folder / ANN
    return folder / _kind_of(ranking).name / ANN


def _kind_of(ranking: str) -> Representation:
    """What is searched by a ranking. Raises InputError for one that has no approximate index."""
    kinds = {kind.ranking: kind for kind in kinds_with_vectors()}
    if ranking not in kinds:
        raise InputError(
            f"ranking '{ranking}' has no approximate index: expected "
            f'{", ".join([CollectionRanking.DENSE, *kinds])}',
            parameters=('ranking',),
        )
    return kinds[ranking]

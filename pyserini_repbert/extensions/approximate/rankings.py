"""The vectors of a ranking of a collection, by its name."""

from __future__ import annotations

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate.folders import kind_of_ranking
from pyserini_repbert.extensions.approximate.ranking_vectors import DenseVectors, RankingVectors


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
    kind = kind_of_ranking(ranking)
    if kind not in generation.settings.further_models:
        raise InputError(
            f'collection {generation.folder} has no {kind.what}: build the index of another '
            'ranking',
            parameters=('ranking',),
        )
    from pyserini_repbert.extensions.approximate.token_vectors import TokenRankingVectors

    return TokenRankingVectors(generation, kind, passages)

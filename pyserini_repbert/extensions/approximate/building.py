"""`build_ann`: the approximate index of an index, whatever its kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate.index import AnnRecord, write_ann
from pyserini_repbert.extensions.approximate.making import (
    AnnSettings,
    ann_lock,
    check_count,
    make_ann,
)
from pyserini_repbert.files import StrPath
from pyserini_repbert.indexes.kind import USUAL_RANKING, kind_of

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.passage_vectors import PassageVectors
    from pyserini_repbert.extensions.approximate.covered import CollectionAnnRecord
    from pyserini_repbert.extensions.approximate.ranking_vectors import RankingVectors


def build_ann(
    index: StrPath,
    settings: AnnSettings | None = None,
    *,
    ranking: str = USUAL_RANKING,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> AnnRecord:
    """Build the approximate index of a dense bundle, or of a ranking of a collection.

    A collection's index stays in use while the collection changes: newer passages are searched
    exactly. Others may search and write the collection meanwhile.

    Parameters
    ----------
    index : the folder
    settings : the recall to reach; default: 0.98 of exact search's 1,000 best passages
    ranking : whose vectors it finds passages by: 'dense', or 'multi', of token vectors
    overwrite : replace the approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError for an index without vectors, or without vectors of this ranking, for fewer
    than 624 vectors, and if no setting finds enough. Nothing is written then.
    """
    folder = Path(index)
    kind = kind_of(str(folder))
    if not kind.has_scans:
        raise InputError(
            f"'{folder}' is {kind.what}: an approximate index is of dense vectors",
            parameters=('index',),
        )
    if kind.is_writable:
        return build_collection_ann(
            folder, ranking, settings, overwrite=overwrite, on_progress=on_progress
        )
    if ranking != USUAL_RANKING:
        raise InputError(
            f"'{folder}' is {kind.what}, and has no ranking '{ranking}': leave it out",
            parameters=('ranking',),
        )
    from pyserini_repbert.extensions.approximate.bundles import build_bundle_ann
    from pyserini_repbert.index.dense import DenseBundle

    return build_bundle_ann(DenseBundle(folder), settings or AnnSettings(), overwrite, on_progress)


def build_collection_ann(
    folder: Path,
    ranking: str,
    settings: AnnSettings | None = None,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> CollectionAnnRecord:
    """Build the approximate index of a ranking of a collection's newest generation.

    The parameters are as in `build_ann`; recall is measured on the live passages.
    """
    from pyserini_repbert.collection.generation import open_generation
    from pyserini_repbert.collection.passage_vectors import PassageVectors
    from pyserini_repbert.extensions.approximate.covered import CollectionAnnRecord, CoveredShard

    wanted = settings or AnnSettings()
    with contextlib.closing(open_generation(folder)) as generation:
        passages = PassageVectors(generation)
        vectors = _vectors_of(generation, ranking, passages)
        check_count(vectors.count_of(passages.live), folder)
        vectors.folder.mkdir(exist_ok=True)
        with ann_lock(vectors.folder, overwrite):
            built = make_ann(vectors, wanted, vectors.recall_measure(wanted), on_progress)
            shards = []
            for shard in vectors.shards:
                n_vectors, _ = shard.shape
                if n_vectors:
                    shards.append(CoveredShard(shard.name, n_vectors))
            record = CollectionAnnRecord(**vars(built.record), shards=tuple(shards))
            return write_ann(vectors.folder, built.index, record)


def _vectors_of(generation: Generation, ranking: str, passages: PassageVectors) -> RankingVectors:
    """The vectors of a ranking of a generation.

    `passages` are the generation's. Raises InputError for a ranking without vectors, and for a
    model that the generation lacks.
    """
    from pyserini_repbert.collection.rankings import CollectionRanking
    from pyserini_repbert.extensions.approximate.folders import kind_of_ranking
    from pyserini_repbert.extensions.approximate.ranking_vectors import DenseVectors
    from pyserini_repbert.extensions.approximate.token_vectors import TokenRankingVectors

    if ranking == CollectionRanking.DENSE:
        return DenseVectors(passages)
    kind = kind_of_ranking(ranking)
    if kind not in generation.settings.further_models:
        raise InputError(
            f'collection {generation.folder} has no {kind.what}: build the index of another '
            'ranking',
            parameters=('ranking',),
        )
    return TokenRankingVectors(generation, kind, passages)

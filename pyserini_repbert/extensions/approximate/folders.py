"""Where the approximate indexes of a collection are. Nothing here reads vectors."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.extensions.approximate.form import ANN


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
    return folder / kind_of_ranking(ranking).name / ANN


def kind_of_ranking(ranking: str) -> Representation:
    """The vectors that a ranking searches.

    Raises InputError for one that has no approximate index.
    """
    kinds = {kind.ranking: kind for kind in kinds_with_vectors()}
    if ranking not in kinds:
        raise InputError(
            f"ranking '{ranking}' has no approximate index: expected "
            f'{", ".join([CollectionRanking.DENSE, *kinds])}',
            parameters=('ranking',),
        )
    return kinds[ranking]

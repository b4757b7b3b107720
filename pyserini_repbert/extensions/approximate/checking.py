"""What `index check` says of the approximate indexes of a collection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.extensions.approximate.covered import CoveredRows, open_collection_ann
from pyserini_repbert.extensions.approximate.folders import kinds_with_vectors
from pyserini_repbert.extensions.approximate.form import ANN
from pyserini_repbert.extensions.approximate.ranking_vectors import (
    DenseVectors,
    RankingVectors,
)
from pyserini_repbert.extensions.approximate.token_vectors import TokenRankingVectors


def describe_anns(generation: Generation) -> list[str]:
    """A line for each approximate index of a generation, once its files are compared.

    Raises DamagedFileError for an index that is not intact, or does not fit.
    """
    passages = PassageVectors(generation)
    n_live = int(np.count_nonzero(passages.live))
    lines = []
    for vectors in _vectors_with_ann(generation, passages):
        record = open_collection_ann(vectors.folder, remembered=False).record
        rows = CoveredRows(vectors.folder, record, vectors.shards)
        n_covered = int(np.count_nonzero(rows.is_covered & passages.live))
        lines.append(
            f'{vectors.folder / ANN}: intact, has {n_covered} of {n_live} passages, {record}'
        )
    return lines


def _vectors_with_ann(generation: Generation, passages: PassageVectors) -> Iterator[RankingVectors]:
    """The vectors of each ranking that has an approximate index."""
    if (generation.folder / ANN).exists():
        yield DenseVectors(passages)
    for kind in kinds_with_vectors():
        is_model = kind in generation.settings.further_models
        if is_model and (generation.folder / kind.name / ANN).exists():
            yield TokenRankingVectors(generation, kind, passages)

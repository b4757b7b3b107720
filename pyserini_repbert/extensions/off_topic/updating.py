"""Keeps the threshold of a collection true: with each generation, from stored vectors."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extensions.off_topic.best_passages import best_rows_of_shards, best_scores
from pyserini_repbert.extensions.off_topic.fixed_vectors import FixedVectors
from pyserini_repbert.extensions.off_topic.kept import (
    KeptQuestions,
    KeptRecord,
    read_kept,
    write_kept,
)
from pyserini_repbert.extensions.off_topic.threshold import choose_threshold

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.generation import Generation


def keep_threshold(collection: Collection) -> None:
    """Write the threshold of the generation that a collection reads.

    The fixed questions are encoded unless this model has encoded them before. The vectors of
    earlier shards are not read.
    """
    generation = collection.generation
    kept = _read_whole(generation)
    vectors = _encode(collection) if kept is None else kept.vectors
    shards = {} if kept is None else kept.shards
    best = best_rows_of_shards(generation, vectors.questions, shards)
    above = best_scores(generation, best) - vectors.backgrounds
    record = KeptRecord(
        model=generation.settings.model_key().hex(),
        dimension=generation.settings.dimension,
        generation=generation.sha256,
        threshold=choose_threshold(above, vectors.answers),
        shards=tuple(best),
    )
    write_kept(generation.folder, KeptQuestions(record, vectors, best))


def _read_whole(generation: Generation) -> KeptQuestions | None:
    """The stored values for the generation's model; None if there is nothing, or it is damaged."""
    try:
        kept = read_kept(generation.folder)
    except DamagedFileError:
        return None
    if kept is None or kept.record.model != generation.settings.model_key().hex():
        return None
    return kept


def _encode(collection: Collection) -> FixedVectors:
    """What the collection's encoder makes of the fixed questions and passages."""
    with closing(collection.searcher(rankings=['dense'])) as searcher:
        dense = searcher.dense
        return FixedVectors.encoded(dense.encode, dense.embed_passages)

"""The best passages of the fixed questions, shard by shard.

A shard never changes, so its best rows are looked for once, some for each question. A generation
only leaves out those that are dead. So a document more or less costs no scan of all passages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation import Generation, LiveShard

# Rows of a shard for each question: where all of them are dead, the shard is read again.
N_ROWS = 8
# Rows that are multiplied at once.
_BLOCK = 16384


@dataclass(frozen=True)
class BestRows:
    """The best rows of a shard, of those that were alive when they were looked for.

    Attributes
    ----------
    rows : of each question, the best first, int32 (questions, `N_ROWS`)
    scores : float32 (questions, `N_ROWS`); of a shard of fewer rows, -inf for the rest
    """

    rows: NDArray[np.int32]
    scores: NDArray[np.float32]


def best_rows_of_shards(
    generation: Generation, questions: NDArray[np.float32], known: Mapping[str, BestRows]
) -> dict[str, BestRows]:
    """The best rows of each shard with live rows, by its name.

    Parameters
    ----------
    generation : of the collection
    questions : their vectors, float32 (questions, d)
    known : of shards that were read before
    """
    best: dict[str, BestRows] = {}
    for live in generation.shards:
        if live.n_live == 0:
            continue
        name = live.shard.name
        rows = known.get(name)
        if rows is None or not np.isfinite(_best_live(live, rows)).all():
            rows = _look_for_best(live, questions)
        best[name] = rows
    return best


def best_scores(generation: Generation, best: Mapping[str, BestRows]) -> NDArray[np.float32]:
    """The score of each question's best passage, float32 (questions,).

    `best` has the best rows of each shard with live rows; there is at least one.
    """
    of_shards = [
        _best_live(live, best[live.shard.name]) for live in generation.shards if live.n_live
    ]
    greatest: NDArray[np.float32] = np.max(of_shards, axis=0)
    return greatest


def _best_live(live: LiveShard, best: BestRows) -> NDArray[np.float32]:
    """The best score of each question in a shard, float32 (questions,); -inf if not known."""
    if best.rows.min() < 0 or best.rows.max() >= len(live.shard):
        return np.full(len(best.rows), -np.inf, np.float32)
    if live.live is None:
        return best.scores[:, 0]
    scores: NDArray[np.float32] = np.where(live.live[best.rows], best.scores, -np.inf).max(axis=1)
    return scores


def _look_for_best(live: LiveShard, questions: NDArray[np.float32]) -> BestRows:
    """The best live rows of a shard, by reading it."""
    numbers = np.arange(len(live.shard))
    if live.live is not None:
        numbers = np.flatnonzero(live.live)
    rows = np.zeros((len(questions), N_ROWS), np.int64)
    scores = np.full((len(questions), N_ROWS), -np.inf, np.float32)
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK]
        products = questions @ np.asarray(live.shard.vectors[block], np.float32).T
        rows = np.hstack([rows, np.broadcast_to(block, products.shape)])
        scores = np.hstack([scores, products])
        order = np.argsort(-scores, axis=1, kind='stable')[:, :N_ROWS]
        rows = np.take_along_axis(rows, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
    return BestRows(rows.astype(np.int32), scores)

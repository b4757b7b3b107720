"""How long a pipeline takes for one query at a time, by stage: EPIC's protocol (its section 3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Query, Ranker
from pyserini_repbert.trace import Notes

TOTAL = 'total'


@dataclass(frozen=True)
class StageLatency:
    """The time of a stage, in milliseconds of wall clock.

    Attributes
    ----------
    stage : its name, as in 'bm25@demo' or 'monobert@50'; `TOTAL` for the whole pipeline
    milliseconds : one value for each query that was timed, in their order
    """

    stage: str
    milliseconds: Sequence[float]

    @property
    def mean(self) -> float:
        """What EPIC's Table 1 reports."""
        return float(np.mean(self.milliseconds))

    def percentile(self, percent: float) -> float:
        """The time within which so many percent of the queries are answered."""
        return float(np.percentile(self.milliseconds, percent))


def measure_latency(
    pipeline: Ranker,
    topics: Sequence[Query],
    *,
    n_warmup: int,
    n_timed: int,
    k: int,
    on_progress: Callable[[int], object] = int,
) -> list[StageLatency]:
    """Rank topics one at a time: the first ones warm up, the next ones are timed.

    Searchers of a fusion run at the same time if possible, so their times may overlap.

    Parameters
    ----------
    pipeline : a first stage, alone or with rerankers
    topics : at least `n_warmup + n_timed`; the first ones are used
    n_warmup : how many are ranked before the first that is timed
    n_timed : how many are timed
    k : hits of each
    on_progress : called with 1 after each topic

    Returns
    -------
    list of StageLatency
        each searcher and reranker in the order of the pipeline, then the total

    Raises
    ------
    InputError
        for too few topics
    """
    n_needed = n_warmup + n_timed
    if len(topics) < n_needed:
        raise InputError(
            f'{len(topics):,} topics were given, and {n_warmup:,} that warm up with {n_timed:,} '
            f'that are timed take {n_needed:,}: give more topics, or smaller numbers',
            parameters=('warm_up', 'queries'),
        )
    seconds_by_stage: dict[str, list[float]] = {}
    for number, topic in enumerate(topics[:n_needed]):
        notes = Notes()
        start = time.perf_counter()
        pipeline.rank([topic], None, k, notes)
        total = time.perf_counter() - start
        if number >= n_warmup:
            for leaf in notes.leaves():
                if leaf is not notes:
                    seconds_by_stage.setdefault(leaf.name, []).append(leaf.seconds)
            seconds_by_stage.setdefault(TOTAL, []).append(total)
        on_progress(1)
    # The total was added after the stages of the first query that was timed.
    latencies = []
    for stage, seconds in seconds_by_stage.items():
        latencies.append(StageLatency(stage, [1000 * value for value in seconds]))
    return latencies

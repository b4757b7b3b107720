"""Quality against cost while k0, k1, the aggregation and m vary (Multi-Stage section 5, Figures 2
to 4).

Everything is replayed from the scores that one deep reranking saved: no model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, by_rank, evaluate
from pyserini_repbert.ranking import Run
from pyserini_repbert.systems.duobert.saved_scores import (
    SavedScores,
    replay,
)

_TRIALS = 10  # drawings of 'sample' that are averaged (Multi-Stage section 5.2)


@dataclass(frozen=True)
class Setting:
    """One way to run the pipeline of monoBERT and duoBERT."""

    k0: int  # candidates of monoBERT
    k1: int = 0  # candidates of duoBERT; 0 leaves it out
    method: str = 'sum'  # of the aggregation
    samples: int | None = None  # m of 'sample'; None for the other methods

    def inferences(self, n: int | None = None) -> tuple[int, int]:
        """Model inputs of monoBERT and of duoBERT for a query with `n` candidates; by default with
        k0.

        Together k0 + k1(k1 - 1) (Multi-Stage Figure 4), and k0 + k1 m with 'sample'. The paper's
        Figure 3 counts k1(m - 1) there, but eq. 7 draws m competitors, each of which is an input.
        """
        n = self.k0 if n is None else min(n, self.k0)
        head = min(self.k1, n)
        competitors = max(head - 1, 0)
        return n, head * (competitors if self.samples is None else min(self.samples, competitors))

    @property
    def series(self) -> str:
        """The name of the curve that the setting belongs to."""
        if not self.k1:
            return 'monoBERT'
        return self.method if self.samples is None else f'sample, m={self.samples}'

    def __str__(self) -> str:
        return f'k0={self.k0}' + (f' k1={self.k1} {self.series}' if self.k1 else '')


class Point(NamedTuple):
    """A setting with its cost and its quality."""

    setting: Setting
    inferences: (
        float  # model inputs a query, the mean over the queries, whose lists may be shorter than k0
    )
    seconds: (
        float | None
    )  # that they take, from the measured seconds an inference of each stage; None if unknown
    values: Mapping[
        str, float
    ]  # by measure, over all judged topics; for 'sample' the mean over trials


def settings(
    k0s: Iterable[int], k1s: Iterable[int], methods: Sequence[str], samples: Sequence[int]
) -> list[Setting]:
    """All settings with k1 = 0, or k1 from 2 to k0 and each method; 'sample' with every m below
    k1 - 1.
    """
    chosen = []
    depths = sorted(set(k1s))
    for k0 in sorted(set(k0s)):
        for k1 in depths:
            if k1 == 0:
                chosen.append(Setting(k0))
            elif 1 < k1 <= k0:
                chosen += [Setting(k0, k1, method) for method in methods if method != 'sample']
                chosen += [
                    Setting(k0, k1, 'sample', m)
                    for m in samples
                    if 'sample' in methods and m < k1 - 1
                ]
    return chosen


def trade_off(
    saved: Sequence[SavedScores],
    qrels: Qrels,
    chosen: Sequence[Setting],
    measures: Sequence[NamedMeasure],
    rates: Sequence[float] = (),
    hits: int = 1000,
    on_progress: Callable[[int], object] = int,
) -> tuple[list[Point], list[Setting]]:
    """Points for the settings, and the settings for which pairs or scores are missing.

    `rates` are the seconds an inference of monoBERT, and of duoBERT, () if unknown; `hits` how many
    hits of each query are evaluated. `on_progress` is called with 1 after each setting.
    """
    points = []
    missing = []
    for setting in chosen:
        runs = (
            _replayed(saved, setting, seed, hits)
            for seed in range(_TRIALS if setting.samples is not None else 1)
        )
        values = [evaluate(run, qrels, measures).means for run in runs if run]
        if values:
            means = {
                named.name: float(np.mean([topic[named.name] for topic in values]))
                for named in measures
            }
            mono, duo = np.mean(
                [setting.inferences(len(topic.docids)) for topic in saved], axis=0
            ).tolist()
            known = rates and (not duo or len(rates) > 1)
            points.append(
                Point(
                    setting, mono + duo, mono * rates[0] + duo * rates[-1] if known else None, means
                )
            )
        else:
            missing.append(setting)
        on_progress(1)
    return points, missing


def _replayed(saved: Sequence[SavedScores], setting: Setting, seed: int, hits: int) -> Run:
    """The run of a setting; empty if a score or a pair that it needs was not saved."""
    k0 = setting.k0
    k1 = setting.k1
    method = setting.method
    samples = setting.samples
    try:
        return by_rank(
            {topic.qid: replay(topic, k0, k1, method, samples, seed)[:hits] for topic in saved}
        )
    except InputError:
        return {}


def seconds_an_inference(about: Mapping[str, Any]) -> list[float]:
    """Seconds an inference of each stage that made any, from the costs saved with the scores."""
    return [
        cost['seconds'] / cost['inferences']
        for cost in about.get('costs', [])
        if cost['inferences']
    ]


def pareto_front(points: Sequence[Point], measure: str) -> list[Point]:
    """The points that are better than all that take as many inferences or fewer, cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.inferences, -point.values[measure])):
        if not front or point.values[measure] > front[-1].values[measure]:
            front.append(point)
    return front


def best_within(points: Sequence[Point], measure: str, budget: float) -> Point:
    """The best point, the cheapest of equal ones, that takes at most `budget` inferences a
    query.
    """
    affordable = [point for point in points if point.inferences <= budget]
    if not affordable:
        least = min(point.inferences for point in points)
        raise InputError(
            f'a budget of {budget:g} inferences a query was given, the cheapest setting takes '
            f'{least:.3g}'
        )
    return max(affordable, key=lambda point: (point.values[measure], -point.inferences))

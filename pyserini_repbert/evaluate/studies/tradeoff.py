"""Quality against cost (Multi-Stage section 5, Figures 2 to 4).

k0, k1, the aggregation and m vary.

Everything is replayed from the scores that one deep reranking saved: no model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure, by_rank, evaluate
from pyserini_repbert.ranking import Run
from pyserini_repbert.systems.duobert.saved_scores import (
    SavedScores,
    replay,
)

SAMPLE = 'sample'  # the aggregation that draws competitors
_TRIALS = 10  # drawings of 'sample' that are averaged (Multi-Stage section 5.2)


class Inferences(NamedTuple):
    """Model inputs of monoBERT and of duoBERT."""

    mono: int
    duo: int


@dataclass(frozen=True)
class Setting:
    """One way to run the pipeline of monoBERT and duoBERT.

    Attributes
    ----------
    k0 : candidates of monoBERT
    k1 : candidates of duoBERT; 0 leaves it out
    method : of the aggregation
    samples : m of 'sample'; None for the other methods
    """

    k0: int
    k1: int = 0
    method: str = 'sum'
    samples: int | None = None

    def inferences(self, n: int | None = None) -> Inferences:
        """Model inputs for a query with `n` candidates; by default with k0.

        Together k0 + k1(k1 - 1) (Multi-Stage Figure 4), and k0 + k1 m with 'sample'. The paper's
        Figure 3 counts k1(m - 1) there, but eq. 7 draws m competitors, and each needs an input.
        """
        n_mono = self.k0 if n is None else min(n, self.k0)
        n_duo = min(self.k1, n_mono)
        competitors = max(n_duo - 1, 0)
        if self.samples is not None:
            competitors = min(self.samples, competitors)
        return Inferences(n_mono, n_duo * competitors)

    @property
    def series(self) -> str:
        """The name of the curve that the setting belongs to."""
        if not self.k1:
            return 'monoBERT'
        return self.method if self.samples is None else f'sample, m={self.samples}'

    def __str__(self) -> str:
        if not self.k1:
            return f'k0={self.k0}'
        return f'k0={self.k0} k1={self.k1} {self.series}'


class Point(NamedTuple):
    """A setting with its cost and its quality.

    Attributes
    ----------
    inferences : model inputs a query, the mean over the queries, whose lists may be shorter than
        k0
    seconds : that they take, from the measured seconds an inference of each stage; None if unknown
    evaluation : over all judged topics; for 'sample' the mean over trials
    """

    setting: Setting
    inferences: float
    seconds: float | None
    evaluation: Evaluation

    @property
    def values(self) -> Mapping[str, float]:
        """By measure, over all judged topics."""
        return self.evaluation.means


class TradeOff(NamedTuple):
    """Points for settings, and the settings for which pairs or scores are missing."""

    points: list[Point]
    missing: list[Setting]


def settings(
    k0s: Iterable[int], k1s: Iterable[int], methods: Sequence[str], samples: Sequence[int]
) -> list[Setting]:
    """All settings with k1 = 0, or k1 from 2 to k0 and each method.

    Parameters
    ----------
    k0s, k1s : candidates of monoBERT and of duoBERT
    methods : aggregations
    samples : the values of m for 'sample'; those below k1 - 1 are used
    """
    chosen = []
    depths = sorted(set(k1s))
    for k0 in sorted(set(k0s)):
        for k1 in depths:
            if k1 == 0:
                chosen.append(Setting(k0))
            elif 1 < k1 <= k0:
                chosen += _two_stage_settings(k0, k1, methods, samples)
    return chosen


def _two_stage_settings(
    k0: int, k1: int, methods: Sequence[str], samples: Sequence[int]
) -> list[Setting]:
    chosen = [Setting(k0, k1, method) for method in methods if method != SAMPLE]
    if SAMPLE in methods:
        chosen += [Setting(k0, k1, SAMPLE, m) for m in samples if m < k1 - 1]
    return chosen


def trade_off(
    saved: Sequence[SavedScores],
    qrels: Qrels,
    chosen: Sequence[Setting],
    measures: Sequence[NamedMeasure],
    *,
    rates: Sequence[float] = (),
    hits: int = 1000,
    on_progress: Callable[[int], object] = int,
) -> TradeOff:
    """The quality and the cost of settings.

    Parameters
    ----------
    saved : the scores of each query
    qrels, measures : how runs are scored
    chosen : the settings
    rates : the seconds an inference of monoBERT, and of duoBERT, () if unknown
    hits : how many hits of each query are evaluated
    on_progress : called with 1 after each setting
    """
    points = []
    missing = []
    for setting in chosen:
        evaluation = _replayed_evaluation(saved, setting, qrels, measures, hits)
        if evaluation is None:
            missing.append(setting)
        else:
            counts = [setting.inferences(len(topic.docids)) for topic in saved]
            mono = float(np.mean([count.mono for count in counts]))
            duo = float(np.mean([count.duo for count in counts]))
            seconds = _predict_seconds(mono, duo, rates)
            points.append(Point(setting, mono + duo, seconds, evaluation))
        on_progress(1)
    return TradeOff(points, missing)


def _replayed_evaluation(
    saved: Sequence[SavedScores],
    setting: Setting,
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    hits: int,
) -> Evaluation | None:
    """A setting, evaluated; its mean over several trials; None if a score or a pair is missing."""
    n_trials = 1 if setting.samples is None else _TRIALS
    trials = []
    for seed in range(n_trials):
        run = _replay_all(saved, setting, seed, hits)
        if run:
            trials.append(evaluate(run, qrels, measures))
    return _mean_evaluation(trials) if trials else None


def _mean_evaluation(trials: Sequence[Evaluation]) -> Evaluation:
    """The mean over trials, topic by topic."""
    first = trials[0]
    values: dict[str, dict[str, float]] = {}
    means = {}
    for measure, by_topic in first.values.items():
        values[measure] = {}
        for qid in by_topic:
            values[measure][qid] = fmean(trial.values[measure][qid] for trial in trials)
        means[measure] = fmean(trial.means[measure] for trial in trials)
    return Evaluation(values, means, first.without_hits)


def _predict_seconds(mono: float, duo: float, rates: Sequence[float]) -> float | None:
    """The seconds of this many inferences; None if the rate of a stage is unknown."""
    if not rates or (duo and len(rates) < 2):
        return None
    return mono * rates[0] + duo * rates[-1]


def _replay_all(saved: Sequence[SavedScores], setting: Setting, seed: int, hits: int) -> Run:
    """The run of a setting; empty if a score or a pair that it needs was not saved."""
    run = {}
    try:
        for topic in saved:
            ranking = replay(topic, setting.k0, setting.k1, setting.method, setting.samples, seed)
            run[topic.qid] = ranking[:hits]
    except InputError:
        return {}
    return by_rank(run)


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
    """The best point with at most `budget` inferences a query; the cheapest if several are
    equal.
    """
    affordable = [point for point in points if point.inferences <= budget]
    if not affordable:
        least = min(point.inferences for point in points)
        raise InputError(
            f'a budget of {budget:g} inferences a query was given, the cheapest setting takes '
            f'{least:.3g}'
        )
    return max(affordable, key=lambda point: (point.values[measure], -point.inferences))
